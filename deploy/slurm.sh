#!/usr/bin/env bash
# A sweep on several machines of Slurm: `sbatch deploy/slurm.sh`, in an environment that has dice_ray on each machine.
# When the job is preempted or its time is over, Slurm starts it again, and the same command continues the sweep.
#SBATCH --job-name=search
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --gpus-per-node=4
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@60
# One task a machine, and one Ray: symmetric-run refuses a machine on which another one runs, hence --exclusive.
# USR1, not TERM, since `scancel` sends that, and a job that is cancelled must not start again.
set -euo pipefail

# The home must be on a file system that all machines see.
export DICE_RAY_RUNS="$HOME/dice_ray_runs"
export DICE_RAY_DATA="$HOME/data"
export MLFLOW_TRACKING_URI="sqlite:///$DICE_RAY_RUNS/mlflow.db"
mkdir -p "$DICE_RAY_RUNS"

# A token for this job alone, which srun hands to all machines in their environment. Without it, anyone who reaches the
# head can run code there.
export RAY_AUTH_MODE=token
RAY_AUTH_TOKEN="$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
export RAY_AUTH_TOKEN
export RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT=300 # seconds; 30 are too few to import Ray from a busy file system

head="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"
trap 'scontrol requeue "$SLURM_JOB_ID"' USR1 # a minute before the time is over

# A task gets one CPU by default: this one gets the machine.
srun --cpus-per-task="$SLURM_CPUS_ON_NODE" \
  ray symmetric-run --address "$head:6379" --min-nodes "$SLURM_NNODES" --num-cpus "$SLURM_CPUS_ON_NODE" -- \
  dice-ray tune mrpc --space joint_tuning --trials 256 --name search --address "$head:6379" \
  --set model.encoder=minilm --set launch.gpus=1 &
wait "$!" # in the background, since bash handles signals only while it waits
