"""The losses as the paper and its authors' code have them, as arms: name -> path -> value.

The paper gives no gamma: 1 is that of its footnote 3. Its example-scope arms predicted the background alone on WNUT17.
"""

PAPER_DL = {"loss": "dice", "loss.dice.scope": "example", "loss.dice.denominator": "squared", "loss.dice.gamma": 1.0}

PAPER_TL = {"loss": "tversky", "loss.tversky.scope": "example", "loss.tversky.gamma": 1.0}

PAPER_DSC = {
    "loss": "self_adjusting_dice",
    "loss.self_adjusting_dice.scope": "example",
    "loss.self_adjusting_dice.denominator": "linear",
    "loss.self_adjusting_dice.decay": 1.0,
    "loss.self_adjusting_dice.gamma": 1.0,
}

AUTHORS_CODE = {
    "loss": "self_adjusting_dice",
    "loss.self_adjusting_dice.scope": "batch",
    "loss.self_adjusting_dice.denominator": "squared",
    "loss.self_adjusting_dice.decay": 0.01,
    "loss.self_adjusting_dice.gamma": 1.0,
}

ARMS = {"paper_dl": PAPER_DL, "paper_tl": PAPER_TL, "paper_dsc": PAPER_DSC, "authors_code": AUTHORS_CODE}

DESCRIPTIONS = {
    "paper_dl": "DL of eq. 7: the mean of each item's own squared dice",
    "paper_tl": "TL of eq. 9: the mean of each item's own Tversky index, alpha .5",
    "paper_dsc": "DSC of eq. 11: the mean of each item's own linear dice of p(1-p)",
    "authors_code": "what the authors' code ran, where a set is a micro-batch: with accumulation ours, a step, differs",
}
