"""What is asked and answered over HTTP: one module a subject. The OpenAPI document is made from these."""
