"""HTML pages: the playground, Swagger UI, and the OpenAPI document they show."""
