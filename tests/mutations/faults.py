"""Faults that a developer could make, and the tests that must find each of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """One change of the product.

    Attributes:
        file: In the repository.
        old: A text that occurs once in the file.
        new: What stands there with the fault.
        tests: Test files or node ids below `tests/`, separated by spaces; one of these tests must fail.
    """

    file: str
    old: str
    new: str
    tests: str

    def __str__(self) -> str:
        """The change in one line."""
        old, new = (f"{' '.join(text.split())[:60]}" for text in (self.old, self.new))
        return f"{self.file}: {old} -> {new or 'nothing'}"


# fmt: off
FAULTS: tuple[Fault, ...] = (
    # settings, terms
    Fault("dice_ray/settings.py", 'extra="forbid"', 'extra="ignore"', "test_settings.py"),
    Fault("dice_ray/settings.py", "return isinstance(value, bool | np.bool_)", "return False", "test_settings.py"),
    Fault("dice_ray/settings.py", "base.keys() == layer.keys():\n        (name,) = layer\n        below, above = base[name] or {}", "base:\n        (name,) = layer\n        below, above = next(iter(base.values())) or {}", "test_settings.py"),
    Fault("dice_ray/terms.py", "math.log(count / sum(filled))", "-math.log(count / sum(filled))", "models/test_heads.py::test_a_prior_bias_starts_at_the_log_prior"),
    # losses
    Fault("dice_ray/models/text_classifier.py", "(1.0, 32.0)", "(1.0, 0.0)", "models/test_export.py"),
    Fault("dice_ray/models/text_classifier.py", "torch.cat([torch.zeros_like(weight_CH), weight_CH])", "torch.cat([weight_CH, torch.zeros_like(weight_CH)])", "models/test_export.py"),
    Fault("dice_ray/tracking/runs.py", "if schema.NOTE not in self._client.get_experiment(self._experiment).tags:", "if True:", "tuning/test_recorder.py"),
    Fault("dice_ray/tracking/environment.py", "run is None or store_uri(mlflow.get_tracking_uri()) != store_uri()", "run is None", "tracking/test_environment.py"),
    Fault("dice_ray/tracking/reader.py", "**constants,", "", "tracking/test_run_record.py"),
    Fault("dice_ray/tuning/optuna_export.py", "dict(outcome.curve)", "{}", "tuning/test_optuna_export.py"),
    Fault("dice_ray/tuning/optuna_export.py", "ledger_in(folder).searched()", "ledger_in(folder)", "tuning/test_optuna_export.py"),
    Fault("analysis/outcome.py", "(comparison.place,) if len(compared) > 1 else ()", "()", "analysis/test_outcome.py"),
    Fault("analysis/outcome.py", "*map(str, own.dropna()), ", "", "analysis/test_outcome.py"),
    Fault("analysis/figures/pr_curves.py", "1 - of_label_N).round(9)", "1 - of_label_N)", "analysis/figures/test_pr_curves.py"),
    Fault("analysis/findings.py", 'self._cells[column(self._cells, "params.tracking.text") == "true"]', "self._cells", "analysis/tables/test_errors.py"),
    Fault("analysis/report.py", "_list(folder, before | now, Path(unfinished))", "pass", "analysis/test_report.py"),
    Fault("analysis/importance.py", "default=LEAST_TRIALS) < LEAST_TRIALS", "default=LEAST_TRIALS) <= LEAST_TRIALS", "analysis/test_summary.py"),
    Fault("dice_ray/tracking/model.py", "required=id_column in example", "required=True", "run/test_served.py"),
    Fault("dice_ray/losses/base.py", "valid_N.sum().to(losses_N.dtype)", "losses_N.new_tensor(losses_N.numel())", "contracts/test_losses.py::test_it_equals_the_formula"),
    Fault("dice_ray/losses/cross_entropy.py", "losses_N * self.weights_C[classes_N]", "losses_N * self.weights_C[classes_N] / self.weights_C[classes_N].mean()", "losses/test_weighting.py"),
    Fault("dice_ray/losses/weighting.py", "math.log10(odds + k)", "math.log(odds + k)", "losses/test_weighting.py"),
    Fault("dice_ray/losses/overlap.py", "above, below = self.top * uy + self.gamma,", "above, below = self.top * uy,", "losses/test_examples.py"),
    Fault("dice_ray/losses/overlap.py", "s_NC.div_(s_NC + form.gamma)", "s_NC.div_(s_NC + 1)", "contracts/test_losses.py::test_it_equals_the_formula"),
    Fault("dice_ray/losses/overlap.py", "ctx.decay = 0.0 if is_stopped else decay", "ctx.decay = decay", "losses/test_dice.py::test_the_stopped_gradient_is_that_of_a_detached_weight"),
    Fault("dice_ray/losses/dice.py", 'power=2 if self.denominator == "squared" else 1)', 'power=2 if self.denominator == "linear" else 1)', "losses/test_examples.py"),
    Fault("dice_ray/losses/dice.py", "columns_C[..., self.background + 1 :]", "columns_C[..., self.background :]", "contracts/test_losses.py::test_it_equals_the_formula"),
    Fault("dice_ray/losses/tversky.py", "a=self.alpha, b=1 - self.alpha - self.beta, c=self.beta", "a=self.beta, b=1 - self.alpha - self.beta, c=self.alpha", "contracts/test_losses.py::test_it_equals_the_formula"),
    Fault("dice_ray/losses/focal.py", "(1 - ctx.gamma * slope_N)", "(1 + ctx.gamma * slope_N)", "contracts/test_losses.py::test_its_gradient_is_that_of_its_value"),
    Fault("dice_ray/losses/items.py", "valid_N = valid_N & is_kept.reshape(-1)", "pass", "contracts/test_losses.py::test_masked_rows_change_nothing"),
    Fault("dice_ray/losses/reduction.py", "total = sum_over_workers(statistics.detach())", "total = statistics.detach()", "losses/test_reduction.py::test_two_workers_are_exact"),
    # data
    Fault("dice_ray/data/readers/base.py", "line.removeprefix(\"\\ufeff\")", "line", "data/readers/test_tables.py"),
    Fault("dice_ray/data/readers/conll.py", 'chain(self.lines(path), [(0, "")])', "self.lines(path)", "data/readers/test_formats.py"),
    Fault("dice_ray/data/readers/mrc_ner.py", "(start, end + 1)", "(start, end)", "data/readers/test_formats.py"),
    Fault("dice_ray/data/readers/tables.py", "delimiter=self.delimiter, strict=True", "delimiter=self.delimiter, quoting=csv.QUOTE_NONE", "data/readers/test_tables.py"),
    Fault("dice_ray/data/readers/tags.py", 'letter in "BSU" or type_ != open_type', 'letter in "BSU"', "data/readers/test_tags.py"),
    Fault("dice_ray/data/readers/tags.py", "return first if others", "return tag if others", "data/readers/test_tags.py"),
    Fault("dice_ray/data/readers/annotated.py", "span.first - span.end, span.first", "span.first, span.end", "data/readers/test_spans.py"),
    Fault("dice_ray/data/readers/squad.py", "if not answers and not question.impossible:", "if False:", "data/test_sources.py"),
    Fault("dice_ray/data/guess/encoding.py", "other.chaos >= matches[0].chaos + CLEAR_LEAD", "other.chaos >= 0", "data/test_encoding.py"),
    Fault("dice_ray/data/guess/tables.py", "(not quoted or num_lost < num_lost_quoted)", "(not quoted or num_lost <= num_lost_quoted)", "data/test_guess.py"),
    Fault("dice_ray/data/cache.py", "file_hash(path / name) != expected", "not (path / name).exists()", "data/test_cache.py"),
    Fault("dice_ray/data/cache.py", "fcntl.flock(file, fcntl.LOCK_EX)", "pass", "data/test_cache.py::test_writers_of_one_entry_wait_for_each_other"),
    Fault("dice_ray/data/cache.py", "not copies.fetch(path.name, draft)", "True", "data/test_copies.py"),
    Fault("dice_ray/data/cache.py", "or _open_entry(draft, full_key) is None", "", "data/test_copies.py"),
    Fault("dice_ray/data/copies.py", "_sizes(entry.name) ==", "_sizes(entry.name).keys() ==", "data/test_copies.py"),
    Fault("dice_ray/data/urls.py", "etag or str(info.mtime_ns)", "str(info.mtime_ns // 10**9)", "data/test_urls.py::test_a_file_at_a_url_is_read_as_one_on_the_disk_and_fetched_again_when_it_changes"),
    Fault("dice_ray/data/split_files.py", "if holds_secret(folder):", "if False:", "data/test_urls.py::test_a_secret_in_a_url_is_not_stored"),
    Fault("dice_ray/tuning/packing.py", "max(UNITS // fitting, UNITS // (fitting + 1) + 1) / UNITS", "UNITS // fitting / UNITS", "tuning/test_packing.py"),
    Fault("dice_ray/tuning/packing.py", "MARGIN * peak + CONTEXT", "peak", "tuning/test_packing.py"),
    Fault("dice_ray/tuning/demand.py", "or self.accelerator in node.accelerators", "or True", "tuning/test_packing.py"),
    Fault("dice_ray/data/sources.py", '        "split_seed": config.split_seed,\n', "", "data/test_sources.py"),
    Fault("dice_ray/data/split_files.py", 'settings["reader"] = {self.reader.name: reader}', 'settings.pop("reader")', "data/test_sources.py"),
    Fault("dice_ray/data/reading.py", 'for split in ("train", "dev", "test"):', 'for split in ("train", "dev"):', "data/test_sources.py"),
    Fault("dice_ray/data/draws.py", "by_stratum = _split(np.frombuffer(order, np.int32), strata)", "by_stratum = [np.frombuffer(order, np.int32)]", "data/test_draws.py"),
    Fault("dice_ray/data/draws.py", "groups.append(hash(same_text(record)))", "groups.append(hash(record.id))", "data/test_sources.py"),
    Fault("dice_ray/data/imbalance.py", " if hash(train[index].content) not in held_out)", ")", "data/test_imbalance.py"),
    Fault("dice_ray/data/oversampling.py", "max(1.0, 1 / ratio)", "1.0", "data/test_oversampling.py"),
    # metrics
    Fault("dice_ray/metrics/classification.py", "probabilities > threshold", "probabilities >= threshold", "metrics/test_classification.py"),
    Fault("dice_ray/metrics/classification.py", "ratio(sum(f1), len(f1))", "ratio(sum(f1), len(sizes))", "metrics/test_classification.py"),
    Fault("dice_ray/metrics/spans.py", 'if type_ is not None and (tag[0] == "B" or type_ != open_type):', 'if type_ is not None and tag[0] == "B":', "metrics/test_spans.py"),
    Fault("dice_ray/metrics/spans.py", "sum(counts.values(), Counts()).scores", '{**sum(counts.values(), Counts()).scores, "f1": sum(count.f1 for count in counts.values()) / max(1, len(counts))}', "metrics/test_spans.py"),
    Fault("dice_ray/metrics/answers.py", "max(scored, key", "min(scored, key", "metrics/test_answers.py"),
    # models
    Fault("dice_ray/models/heads.py", "present - absent for", "absent - present for", "models/test_heads.py"),
    Fault("dice_ray/models/heads.py", "self.output(self.dropout(hidden_BLH))", "self.output(hidden_BLH)", "models/test_heads.py"),
    Fault("dice_ray/models/heads.py", "mask_BL.flip(1).argmax(1)", "mask_BL.argmax(1)", "models/test_heads.py::test_a_text_head_pools_the_tokens_that_are_no_padding"),
    Fault("dice_ray/models/adapter.py", "module.merge()", "module.get_base_layer()", "contracts/test_encoders.py::test_an_adapter_is_trained_alone_and_merges_into_the_weights"),
    Fault("dice_ray/models/layers.py", "at <= int(highest)", "at < int(highest)", "contracts/test_encoders.py::test_layers_are_frozen_from_the_lowest_on"),
    Fault("dice_ray/models/pretrained_tokenizer.py", "pair=f\"{begin}$A {end} $B:1 {end}:1\"", "pair=f\"{begin}$A $B:1 {end}:1\"", "models/test_pretrained.py::test_a_decoder_reads_each_text_to_its_end_token"),
    Fault("dice_ray/training/checkpoint.py", "(stored := state.get(\"kept\", \"\")) != kept", "(stored := kept) != kept", "models/test_adapter.py::test_the_weights_that_a_checkpoint_lacks_must_be_those_of_before"),
    Fault("dice_ray/models/heads.py", "device=place_B.device), place_B]", "device=place_B.device), 0]", "models/test_heads.py"),
    # tasks
    Fault("dice_ray/tasks/answer_spans.py", "min(no_answer[number], none)", "none", "tasks/test_extractive_qa.py"),
    Fault("dice_ray/tasks/answer_spans.py", "reach = min(longest, end_BL.shape[1])", "reach = min(longest + 1, end_BL.shape[1])", "tasks/test_answer_spans.py"),
    Fault("dice_ray/tasks/encoding.py", '        "tokenizer": TINY if pretrained is None else _tokenizer_key(pretrained),\n', "", "tasks/test_encoding.py"),
    Fault("dice_ray/tasks/rows.py", "min(left, right) > best[word][0]", "min(left, right) < best[word][0]", "tasks/test_rows.py"),
    Fault("dice_ray/tasks/tagging.py", "if tag not in (None, self.background)", "if tag is not None", "tasks/test_tagging.py"),
    Fault("dice_ray/tasks/text_classification.py", "sums_NC / num_windows[:, None]", "sums_NC", "tasks/test_text_classification.py::test_probabilities_are_averaged_over_the_windows_of_a_text"),
    Fault("dice_ray/tasks/text_classification.py", 'binary_scores(positive_N, labels_N, decisions["threshold"])["f1"]', 'binary_scores(positive_N, labels_N, best_threshold(positive_N, labels_N))["f1"]', "tasks/test_text_classification.py::test_a_split_is_scored_at_the_given_threshold_not_at_its_own_best"),
    Fault("dice_ray/tasks/text_classification.py", 'at_threshold_NC = probabilities_NC > decisions["threshold"]', "at_threshold_NC = probabilities_NC > best_threshold(probabilities_NC.ravel(), labels_NC.ravel())", "tasks/test_text_classification.py::test_a_split_is_scored_at_the_given_threshold_not_at_its_own_best"),
    Fault("dice_ray/tasks/text_classification.py", 'metrics["constant_f1"] = constant_f1(labels_N)', 'metrics["constant_f1"] = 0.0', "tasks/test_sentence_pair.py"),
    # training
    Fault("dice_ray/training/optim.py", "(step + 1) / (num_warmup + 1)", "step / num_warmup", "training/test_optim.py"),
    Fault("dice_ray/training/optim.py", "parameter.ndim > 1", "parameter.ndim > 0", "training/test_optim.py"),
    Fault("dice_ray/training/optim.py", "num_layers + 1 - of_layer", "num_layers - of_layer", "training/test_optim.py"),
    Fault("dice_ray/training/loop.py", "num_worse == 0 and workers.rank() == 0", "workers.rank() == 0", "training/test_loop.py::test_the_best_checkpoint_is_that_of_the_first_highest_score"),
    Fault("dice_ray/training/loop.py", 'return state["step"], TrainingTally', 'return state["step"] - 1, TrainingTally', "training/test_loop.py::test_an_interrupted_run_yields_its_history_and_ends_like_an_uninterrupted_one"),
    Fault("dice_ray/training/loop.py", 'set_random_state(state["rng"][workers.rank()], device)', "pass", "training/test_loop.py::test_an_interrupted_run_yields_its_history_and_ends_like_an_uninterrupted_one"),
    Fault("dice_ray/training/checkpoint.py", "        sync(unfinished)\n", "", "training/test_checkpoint.py::test_files_are_synchronised_before_they_are_renamed"),
    Fault("dice_ray/training/step.py", "set_random_state(states[number], self.numerics.device)", "pass", "training/test_step.py::test_dropout_is_drawn_once_for_both_passes"),
    Fault("dice_ray/training/step.py", "workers.sum_gradients(self.model.parameters())", "pass", "training/test_step.py::test_losses_are_equal_for_any_number_of_workers_and_micro_batches"),
    # configuration
    Fault("dice_ray/config/load.py", 'assignment.partition("=")', 'assignment.rpartition("=")', "config/test_load.py"),
    Fault("dice_ray/config/load.py", "values[path] = parse_yaml(text)", "values[path] = text", "config/test_load.py api/test_api.py::test_settings_are_written_as_a_mapping_or_as_assignments"),
    Fault("dice_ray/config/checks.py", "config.training.batch_size > num_rows", "config.training.batch_size >= num_rows", "training/test_loop.py::test_a_batch_size_above_the_number_of_rows_is_refused"),
    Fault("dice_ray/settings.py", "allow_inf_nan=False,", "allow_inf_nan=False, strict=True,", "config/test_load.py"),
    # tracking
    Fault("dice_ray/tracking/writer.py", "deque(self._spool.unsent if self._spool else ())", "deque()", "tracking/test_spool.py"),
    Fault("dice_ray/tracking/runs.py", " if (point.metric, point.step) not in stored}", "}", "tracking/test_writer.py"),
    Fault("dice_ray/tracking/run_record.py", '"true" if scores.get(', '"false" if not scores.get(', "tracking/test_run_record.py"),
    Fault("dice_ray/tracking/run_record.py", "key=lambda evaluation: evaluation[0][1]", "key=lambda evaluation: evaluation[0][0]", "tracking/test_run_record.py"),
    Fault("dice_ray/tracking/server.py", 'HOST = "127.0.0.1"', 'HOST = "0.0.0.0"', "tracking/test_server.py"),
    Fault("dice_ray/tracking/reader.py", 'values = frame[name].mask(frame[name] == "null")', "values = frame[name]", "tracking/test_reader.py"),
    # run
    Fault("dice_ray/run/jobs.py", "&& cd {folder_} && ", "&& ", "run/test_jobs.py::test_the_shell_of_a_job_works_in_the_folder_of_the_run"),
    Fault("dice_ray/run/jobs.py", "[*get_runtime_env_default_excludes(), *excluded]", "[]", "run/test_jobs.py::test_what_a_job_cannot_have_is_refused_before_it_is_sent"),
    Fault("dice_ray/run/folder.py", "fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)", "fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)", "tuning/test_ledger.py"),
    Fault("dice_ray/run/folder.py", "    sync(unfinished)\n    unfinished.replace(file)\n", "    unfinished.replace(file)\n", "run/test_folder.py"),
    Fault("dice_ray/run/folder.py", "not in NEUTRAL_SECTIONS", "in NEUTRAL_SECTIONS", "api/test_api.py::test_a_name_goes_on_with_its_own_run_alone"),
    Fault("dice_ray/run/folder.py", "if each.exists() and target.exists() and each.samefile(target):", "if False:", "cli/test_app.py::test_no_command_overwrites_its_input_or_works_for_an_output_it_cannot_write"),
    Fault("dice_ray/run/here.py", "            store.send(folder)\n            yield event\n", "            yield event\n", "run/test_store.py::test_a_run_goes_on_where_another_machine_has_stopped_and_a_third_one_reads_it"),
    Fault("dice_ray/run/store.py", 'if not file.exists() or known.get(name, {}).get("there") != _there(info):', "if not file.exists():", "run/test_store.py::test_a_machine_finds_what_another_one_has_sent"),
    Fault("dice_ray/run/store.py", "        if info.base_name in names:", "        if False:", "run/test_store.py::test_a_machine_finds_what_another_one_has_sent"),
    Fault("dice_ray/run/doctor.py", "if needs.disk > free else", "if False else", "run/test_doctor.py::test_what_one_machine_alone_cannot_show"),
    Fault("dice_ray/run/stopping.py", "if not is_first or not self.is_asked:", "if not is_first:", "run/test_stopping.py"),
    Fault("dice_ray/training/loop.py", "stops = stops or is_asked", "stops = stops and is_asked", "training/test_loop.py::test_a_run_that_is_asked_to_stop_loses_no_step"),
    Fault("dice_ray/metrics/classification.py", "max(at_half, BEYOND_CONSTANT * constant_f1(labels))", "at_half", "metrics/test_classification.py"),
    Fault("dice_ray/tracking/store_errors.py", "IN_DOUBT: Final = (401, 403, 404)", "IN_DOUBT: Final = ()", "tracking/test_outage.py"),
    Fault("dice_ray/run/train.py", 'prepared.test() if split == "test" else prepared.dev', "prepared.dev", "run/test_trained.py"),
    # tuning
    Fault("dice_ray/tuning/ledger.py", "            os.fsync(file.fileno())\n", "", "tuning/test_ledger.py"),
    Fault("dice_ray/tuning/ledger.py", "self._size = len(complete) + len(newline)", "self._size = self.path.stat().st_size", "tuning/test_ledger.py"),
    Fault("dice_ray/tuning/ledger.py", "max((score for _, score in self.curve), default=None)", "next((score for _, score in reversed(self.curve)), None)", "tuning/test_ledger.py"),
    Fault("dice_ray/tuning/ledger.py", ' or outcomes[cell.id].state == "failed"]', "]", "tuning/test_ablation.py::test_cells_that_failed_or_never_ended_are_missing"),
    Fault("dice_ray/tuning/ranking.py", "statistics.fmean(self.rerun_scores) if self.rerun_scores else self.score", "self.score", "tuning/test_reruns.py"),
    Fault("dice_ray/tuning/ranking.py", "return -len(self.rerun_scores), -self.mean, -self.score", "return 0, -self.mean, -self.score", "tuning/test_reruns.py"),
    Fault("dice_ray/tuning/searchers.py", "self._study.tell(trial, state=TrialState.PRUNED)", "self._study.tell(trial, [max(each[SCORE] for each in results.values())])", "tuning/test_searchers.py"),
    Fault("dice_ray/tuning/searchers.py", "        if is_own:\n            replay(self._study, scores)\n", "", "tuning/test_pruning.py"),
    Fault("dice_ray/tuning/searchers.py", "is_own=past is history", "is_own=True", "tuning/test_warm_start.py"),
    Fault("dice_ray/tuning/study_plan.py", '("training.seed", "data.split_seed") if is_drawn else', '("training.seed",) if is_drawn else', "tuning/test_plan.py"),
    Fault("dice_ray/tuning/study_plan.py", "[decisive, content, RESULTS_VERSION]", "[decisive, RESULTS_VERSION]", "tuning/test_plan.py"),
    Fault("dice_ray/tuning/recorder.py", '"done" if result.get("finished") else "pruned"', '"done"', "tuning/test_recorder.py"),
    Fault("dice_ray/tuning/tuned.py", "trial.rank < best[loss][1].rank", "trial.score > best[loss][1].score", "tuning/test_tuned.py"),
    Fault("dice_ray/tuning/tuned.py", "of_loss | _apart_from_loss(found)", "of_loss", "tuning/test_tuned.py"),
    Fault("dice_ray/tuning/runner.py", "[prepared.test()] if isinstance(plan, StudyPlan) else []", "[prepared.test()]", "tuning/test_trial.py::test_a_search_never_reads_the_test_split"),
    Fault("dice_ray/tuning/trial.py", "if evaluation.finished and isinstance(work.plan, StudyPlan):", "if evaluation.finished:", "tuning/test_trial.py::test_a_search_never_reads_the_test_split"),
    Fault("dice_ray/tuning/tuned.py", 'OF_LOSS: Final = ("loss", "mining")', 'OF_LOSS: Final = ("loss",)', "tuning/test_tuned.py"),
    Fault("dice_ray/tuning/tuned.py", "(layers[0], layer, *layers[1:])", "(*layers, layer)", "tuning/test_tuned.py"),
    Fault("analysis/wording.py", "_is_tuned(comparison) and not _shared(comparison)", "_is_tuned(comparison)", "analysis/test_card.py"),
    # api, cli
    Fault("dice_ray/api/jobs.py", "if without_password(store) != store:", "if False:", "run/test_jobs.py::test_what_a_job_cannot_have_is_refused_before_it_is_sent"),
    Fault("dice_ray/api/places.py", r're.fullmatch(r"\w[\w.-]*", name)', r're.match(r"\w[\w.-]*", name)', "api/test_places.py"),
    Fault("dice_ray/cli/app.py", "sys.exit(2 if isinstance(", "sys.exit(1 if isinstance(", "cli/test_app.py::test_an_error_of_the_user_exits_with_2_and_prints_no_traceback"),
    Fault("dice_ray/cli/layout.py", "if used + least[number] > WIDTH and", "if", "cli/test_layout.py"),
    Fault("dice_ray/tuning/progress.py", "(statistics.fmean(of_arm), arm", "(max(of_arm), arm", "tuning/test_progress.py"),
    Fault("dice_ray/cli/printing.py", "value if math.isfinite(value) else None", "value", "cli/test_printing.py"),
    Fault("dice_ray/cli/printing.py", "if not result.is_finished:\n        raise typer.Exit(status)", "if not result.is_finished:\n        raise typer.Exit(0)", "cli/test_app.py::test_a_signal_ends_a_run_at_a_checkpoint_and_names_the_command_that_resumes_it cli/test_app.py::test_resume_passes_what_was_given_and_an_interruption_exits_with_130"),
    # search_spaces
    Fault("search_spaces/arms.py", '"loss.self_adjusting_dice.decay": 1.0', '"loss.self_adjusting_dice.decay": 0.5', "search_spaces/test_arms.py"),
    Fault("search_spaces/loss_tuning.py", 'trial.suggest_float("loss.focal.gamma", 0, 5)', 'trial.suggest_float("loss.dice.gamma", 0, 5)', "search_spaces/test_loss_tuning.py"),
    Fault("search_spaces/studies/tversky_alpha.py", "range(1, 10)", "range(1, 9)", "search_spaces/test_studies.py"),
    # analysis
    Fault("analysis/statistics.py", "special.stdtrit(freedom, 1 - alpha / 2)", "special.ndtri(1 - alpha / 2)", "analysis/test_statistics.py"),
    Fault("analysis/statistics.py", "ALPHA / (num_tested - min(rank, num_rejected))", "ALPHA", "analysis/test_statistics.py"),
    Fault("analysis/statistics.py", "if math.isinf(high - low):", "if True:", "analysis/test_statistics.py"),
    Fault("analysis/statistics.py", "return -1.0, 1.0", "return UNIT_INTERVAL", "analysis/tables/test_study.py"),
    Fault("analysis/statistics.py", "(len(tested) - rank) * p", "(rank + 1) * p", "analysis/test_statistics.py"),
    Fault("analysis/statistics.py", "ALPHA and self.interval.num >= FEW_SEEDS", "ALPHA and self.interval.num > 0", "analysis/tables/test_study.py"),
    Fault("analysis/best_of.py", "between_seeds - rest / num", "between_seeds", "analysis/test_best_of.py"),
    Fault("analysis/best_of.py", "upto_NNR.sum(1)[:, None] - upto_NNR", "upto_NNR.sum(1)[:, None] - 1", "analysis/test_best_of.py"),
    Fault("analysis/variance.py", "variance_N - squares_of_both / (num_arms * num_seeds)", "variance_N", "analysis/test_variance.py"),
    Fault("analysis/budget.py", "predictor.mean if predictor else runs[\"test\"].min()", "0.0", "analysis/test_budget.py"),
    Fault("analysis/budget.py", ".clip(upper=level)", "", "analysis/test_budget.py"),
    Fault("analysis/budget.py", "max(blocks, key=len)", "blocks[0]", "analysis/test_budget.py"),
    Fault("analysis/verdict.py", "    if leader.failed:\n", "    if False:\n", "analysis/test_verdict.py"),
    Fault("analysis/verdict.py", "if highest.score.mean > leader.score.mean + NO_SPREAD:", "if False:", "analysis/test_verdict.py"),
    Fault("analysis/verdict.py", "    if most < FEW_SEEDS:\n", "    if most < 2:\n", "analysis/test_verdict.py"),
    Fault("analysis/verdict.py", "if all(_is_constant(arm, comparison) for arm in scored):", "if False:", "analysis/test_verdict.py"),
    Fault("analysis/verdict.py", '"no_difference": "NO"', '"no_difference": "YES"', "analysis/test_card.py"),
    Fault("analysis/tables/errors.py", "if id_ not in dead", "if id_", "analysis/tables/test_errors.py"),
    Fault("analysis/tables/errors.py", "num_items - counts", "counts", "analysis/tables/test_errors.py"),
    Fault("analysis/tables/study.py", "first, dead = [*dead, *first], []", "pass", "analysis/tables/test_study.py"),
    Fault("analysis/tables/base.py", "bool(bold & {*range(start, end)})", "False", "analysis/tables/test_study.py"),
    Fault("analysis/findings.py", "str(variants[0]) if len(variants) else", "str(variants[-1]) if False else", "analysis/test_card.py"),
    Fault("analysis/comparison.py", "next(compared) if each.interval.num >= FEW_SEEDS else each", "each", "analysis/test_verdict.py"),
    Fault("analysis/verdict.py", "arm.new_data.is_significant for arm", "True for arm", "analysis/test_verdict.py"),
    Fault("analysis/wording.py", "if has_failed_control(of.comparison) else []", "if False else []", "analysis/test_card.py"),
    Fault("analysis/new_data.py", " or np.ptp(differences_S) < NO_SPREAD", "", "analysis/test_new_data.py"),
    Fault("analysis/paper/tables.py", "stored >= LEAST_WHOLE * published", "True", "analysis/paper/test_tables.py"),
    Fault("analysis/figures/ranks.py", "ascending=False", "ascending=True", "analysis/figures/test_ranks.py"),
    Fault("analysis/figures/forest.py", "arm.at_tuned_threshold or", "", "analysis/figures/test_forest.py"),
    Fault("analysis/figures/study.py", "axes.autoscale(False)", "pass", "analysis/figures/test_study.py"),
    Fault("analysis/comparison.py", "runs & has_ended & ~once", "runs & ~once", "analysis/test_verdict.py"),
    Fault("analysis/comparison.py", "arms.append(Arm(CONSTANT, predictor))", "pass", "analysis/test_report.py"),
    Fault("analysis/comparison.py", "once = latest[~is_control]", "once = latest", "analysis/test_card.py"),
    Fault("analysis/columns.py", "np.isfinite(values) & has_score", "np.isfinite(values)", "analysis/test_report.py"),
    Fault("analysis/tables/base.py", 'in "&%$#_{}"', 'in "&%$#{}"', "analysis/tables/test_base.py"),
    Fault("analysis/html_page.py", "autoescape=True", "autoescape=False", "analysis/test_html_page.py"),
)
