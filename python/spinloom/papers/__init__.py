"""The papers' measurements: claims, figures, studies, and the cells that they need."""
