"""One file or folder per domain, which defines `DOMAIN`; amago.envs.catalogue finds them."""
