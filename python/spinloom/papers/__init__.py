"""What the papers measured: claims, figures, studies, and the cells that they need."""
