"""How time and memory grow with rows, columns, parties and levels."""
