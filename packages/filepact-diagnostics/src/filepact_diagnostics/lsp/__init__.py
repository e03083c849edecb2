"""Language servers: kept in agreement with the files, and asked what they find wrong with them."""
