"""One call per job, on neutral values: what every dialect does once its wire format is decoded."""
