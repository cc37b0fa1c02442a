"""Translation of whole documents: which texts a document has, and the document with their translations."""
