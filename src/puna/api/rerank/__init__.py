"""Documents ranked by how well they answer a query, in the shapes of Cohere, Jina and text-embeddings-inference."""
