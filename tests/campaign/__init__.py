"""Broken logs by the hundred thousand: `python -m tests.campaign --count 200000 --seed 7 [--bounds]`.

Every mutant follows from a seed and a number, so one that fails can be made again: `--only SEED:NUMBER`. Mutants are
made of logs that the tests' builder writes (`built`) and of short logs of real servers (`seeds/`, made by
`python -m tests.campaign.make_seeds`).
"""
