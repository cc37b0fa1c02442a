"""Long jobs: where their finished chunks are kept. nmt/jobs computes them."""
