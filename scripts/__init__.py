"""Programs of the maintainers: they write generated files, and audit the packages."""
