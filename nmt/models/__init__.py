"""Translation models: from token ids to scores of target words."""
