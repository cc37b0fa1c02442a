from nmt.training.loop import Progress, TrainingConfig, limit_reached


def test_limits() -> None:
    config = TrainingConfig(max_steps=10, max_epochs=2, max_minutes=1.0, patience=3)
    assert limit_reached(config, Progress(step=9, epoch=1, seconds=59.9, bad=2)) == ""
    assert limit_reached(config, Progress(step=10)).startswith("max_steps")
    assert limit_reached(config, Progress(epoch=2)).startswith("max_epochs")
    assert limit_reached(config, Progress(seconds=60)).startswith("max_minutes")
    assert limit_reached(config, Progress(bad=3)).startswith("patience")
    assert limit_reached(TrainingConfig(patience=0), Progress(step=10**9, bad=10**9)) == ""
