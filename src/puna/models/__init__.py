"""Several models behind one port: which there are, which are loaded, and who has to go for the next one."""
