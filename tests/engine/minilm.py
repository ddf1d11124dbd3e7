"""Vectors of all-MiniLM-L6-v2 (Q8_0) as llama.cpp's server makes them, each text alone: 16-bit floats in base64."""

VECTORS = {
    "The quick brown fox jumps over the lazy dog.": (
        "gCnBK0Aq4CyGJjOp9w3mq1mQ9SU0KiErGqnmpicgH6aOqJCotSxdqi+rGqwIKMIlgaxIqH2sHKrYLBuvtqIvKSKnDiRRqButiitBHOEoryYxKu"
        "yR1akDKIuuXCpBrceg3B+jI2WpC6eaIUosdCx9nTqghKllKpujCiEmKR0lWSCmJ7kkLaeYrNyuApiTImardaS6kEQUOacFKoOqtSswI7mm0qlM"
        "qsoo9yjfkggoDCW4ojOngad2rJCqWCX/IjCTuCRQqbupBpaGI9Mkiy/EJbelGKgonsaWgS7yI0CaFaS7nhwuAyevJa+st6WwqeOudiw7MBatoB"
        "9FphKqY6cAgIws9aV0rXasCayVrKueFqbHpwwqKa3nlfQh5qYbqF6v3qGzoSIonCseKAIv16gfqNsq46WRrGSlO6ZEKoCo6alGqTsvGqN3r1sr"
        "C6wLp8srz5AZJBEn0CUerBii0yaYITMFmiURqEIfRSoBqk+sPC7XLKCmmaiELnQksKh3HDyqzTC0q2StYR9ioggtkiSKKYUoMbBpKCWlGiHhqP"
        "Ap0qPJL0CtC6oaKeikXyyZH20lmqLXqSuprZ+uKsGokywAANIuSKqOLD0s6almKuuhESjwrWgqZKhNJB6RnZ3DLtGMNCuNoLQl+SKKqiUo1BQr"
        "LBMpQytbLRClG6aErt6ohavGE6epWSbRK+6oXZ82mUWuuSSxk70jbiwZKB8eNau7KqWp4imjoBgoxSohJ8Sq9Kr4FrqmZygKpbEi9CfPIzuVCa"
        "SArWusaKnzLJCsoJ2nJZIi/qweHE8tIy+GGrItMqkcI22hBZ9iIVGs3ShYrxMsgykkrEslHi3PKu8sYKIAgJupkh+rrWopnixKJP2oWSVyLfyo"
        "dCeXJz4sfyfzo7okTqhaI1EorzHYpICro6PPpX6p2abWraGRaKZMIL2qhC1Xrf0g+yg5Ka0uf5QyJUMcJiODKVWlpqJJrCSdAajDrlcsi6m7qX"
        "6oxim8Kx6sb53NpOSrJqkzKCYryio2K3su"
    ),
    "How do I reset my password?": (
        "Bx42rJ+syad9qYksQyAAJNgrgCR4qe4otirGqR+qf501rPAvzqRtrX4epaYWqhekph55owqaZSatrqkXRiL0JGQnsyYYo2co3qkYG3gqkKP4rd"
        "Oln61MKIstQibOqJUqMirRFNQuRxD3oJClQazPK1crDSySK1Ap9SWxkSqorS5vrGymO55FHIEoX6aprWaqD60GpjEk/iZfHqCqHCy9L7msWaWR"
        "osAp1y+9K7klt5mnIuiofypFpo6qWKTArkei2ikSKC+sfimnKWioCRQXreApZan/Lj8t9aRpJx0mYKpPIRQsTCTro3SlkiMqJp4nWKmIIwEhMa"
        "gLqoKjR6cAgFus/iCMqQIiHqgXrCokIKxDqigsEigjIjOpg61LpCIiGabQHuSjzCAWpeYiRy3XoHwj5alxJ3+ocqiTJGShQSKsICAk/aujH0It"
        "t6fIqQElzaVDpd8p3KyKKgSVvicmK3oopCFTqXGdgZdmGz0lghtQEqGpoK18rNotfScCpr8bwSXRqb4shqmCENAqC6Z4HkqnUiWqrugpPChNKm"
        "CrPSoxmLwjWa19LWuptSGnJP4tCKFAqtWqtqSnLFiv3KwAAJ8YhKx8JRemBSz8psEeXykOp1KgfiodLwEicaULMAYtHamlLRKwqZjirtUqBhxd"
        "pY8ppJ07JRAtlyCuncQsGKYsn8kwjioqoQYtKyCqqiWoLiKFKS2btpljqlyeYyqKq10kbCiNpSmrVC6uq+eh1CRBK9il8x4brlqnQy2IojUqdK"
        "XRHeSm/qbIrYYr16k+L9EsViSALiCvgqy8KEWteKUkLo+k0qy9qqSsoa3KJ+EpdSocoUiqF6jtIdaPdR4AgPmja6sbLXAkkS0XKDiqEyR2rUyu"
        "oqk2J30oGRy+pkeoU6rrohcnoyVcqPGcCKLfrCItEC26m4EtuSr0oZCnJCIDH1isNbFep5Gnax/vpNemTyC7Kt8rpivLqmCXwCGSI70mFh9Frz"
        "IuvCWVLBukGyLGKUCqE689nfcn7SwLF+ms"
    ),
}
"""By text."""
