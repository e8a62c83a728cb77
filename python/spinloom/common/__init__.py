"""What every other package uses: errors, units, files, output, data."""
