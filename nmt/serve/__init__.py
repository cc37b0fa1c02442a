"""The translation server of nmt-serve: engines, and the interfaces that browsers and programs speak."""
