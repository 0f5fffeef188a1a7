"""One server for every verb: requests of all clients merged into batches, over HTTP and the wires of others."""
