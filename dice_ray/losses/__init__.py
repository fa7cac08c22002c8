"""LossConfig: the place where a loss is registered, and the losses as plain modules."""

from typing import Annotated, TypeAlias

from dice_ray.losses.cross_entropy import (
    CrossEntropyConfig,
    CrossEntropyLoss,
    MajorityOrMinorityConfig,
    WeightedCrossEntropyConfig,
)
from dice_ray.losses.custom import CustomConfig
from dice_ray.losses.dice import (
    DiceCEConfig,
    DiceCELoss,
    DiceConfig,
    DiceLoss,
    SelfAdjustingDiceConfig,
    SelfAdjustingDiceLoss,
)
from dice_ray.losses.distribution_balanced import DistributionBalancedConfig, DistributionBalancedLoss
from dice_ray.losses.focal import AsymmetricConfig, AsymmetricLoss, FocalConfig, FocalLoss, PolyConfig, PolyLoss
from dice_ray.losses.listwise import ListwiseConfig, ListwiseLoss
from dice_ray.losses.margins import (
    LdamConfig,
    LdamLoss,
    LogitAdjustedConfig,
    LogitAdjustedLoss,
    VectorScalingConfig,
    VectorScalingLoss,
)
from dice_ray.losses.tversky import TverskyConfig, TverskyLoss
from dice_ray.losses.weighting import ClassWeightedLoss
from dice_ray.settings import Choice

LossConfig: TypeAlias = Annotated[
    CrossEntropyConfig
    | WeightedCrossEntropyConfig
    | FocalConfig
    | DiceConfig
    | SelfAdjustingDiceConfig
    | TverskyConfig
    | DiceCEConfig
    | LogitAdjustedConfig
    | AsymmetricConfig
    | VectorScalingConfig
    | LdamConfig
    | MajorityOrMinorityConfig
    | PolyConfig
    | DistributionBalancedConfig
    | ListwiseConfig
    | CustomConfig,
    Choice(),
]

__all__ = [
    "AsymmetricConfig",
    "AsymmetricLoss",
    "ClassWeightedLoss",
    "CrossEntropyConfig",
    "CrossEntropyLoss",
    "CustomConfig",
    "DiceCEConfig",
    "DiceCELoss",
    "DiceConfig",
    "DiceLoss",
    "DistributionBalancedConfig",
    "DistributionBalancedLoss",
    "FocalConfig",
    "FocalLoss",
    "LdamConfig",
    "LdamLoss",
    "ListwiseConfig",
    "ListwiseLoss",
    "LogitAdjustedConfig",
    "LogitAdjustedLoss",
    "LossConfig",
    "MajorityOrMinorityConfig",
    "PolyConfig",
    "PolyLoss",
    "SelfAdjustingDiceConfig",
    "SelfAdjustingDiceLoss",
    "TverskyConfig",
    "TverskyLoss",
    "VectorScalingConfig",
    "VectorScalingLoss",
    "WeightedCrossEntropyConfig",
]
