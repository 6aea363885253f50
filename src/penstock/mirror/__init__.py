"""The proof that a mirror of a table, which a stream keeps equal to it, is equal: Parquet, Delta, another database."""
