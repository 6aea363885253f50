"""canal's protocol: what its server and its clients share."""
