"""The package that all others use: errors, units, files, output, data."""
