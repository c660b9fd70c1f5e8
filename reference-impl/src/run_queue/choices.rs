//! Behaviours that the contract leaves open for run_queue, as values (contract §8 `[choices]`).

use super::Treat;
use crate::choices::{choices, two};
use crate::run_log::choices::Verdict;

choices! {
    /// Worker: treatment of `.x.json` and `.json`.
    dot_name: Treat = Treat::Leave, { "run" => Treat::Run, "leave" => Treat::Leave, "failed" => Treat::Fail };
    /// Worker: treatment of `X.JSON`.
    upper_case_suffix: Treat = Treat::Leave, {
        "run" => Treat::Run, "leave" => Treat::Leave, "failed" => Treat::Fail
    };
    /// Worker: treatment of a name that is not UTF-8.
    not_utf8_name: Treat = Treat::Run, { "run" => Treat::Run, "leave" => Treat::Leave, "failed" => Treat::Fail };
    /// Worker: treatment of a symbolic link with the name of a job.
    symlink: Treat = Treat::Leave, { "run" => Treat::Run, "leave" => Treat::Leave, "failed" => Treat::Fail };
    /// Worker: treatment of a folder, a FIFO or a socket with the name of a job. As a job it fails, because it has no
    /// text.
    special_file: Treat = Treat::Leave, { "run" => Treat::Run, "leave" => Treat::Leave, "failed" => Treat::Fail };
    /// Worker: treatment of an unreadable file. As a job it fails, because it has no text.
    unreadable: Treat = Treat::Fail, { "run" => Treat::Run, "leave" => Treat::Leave, "failed" => Treat::Fail };
    /// Worker: treatment of a second worker on the same queue.
    second_worker: SecondWorker = SecondWorker::Share, {
        "share" => SecondWorker::Share, "refuse" => SecondWorker::Refuse
    };
    /// Worker: treatment of the running job at SIGTERM.
    sigterm: Sigterm = Sigterm::Finish, { "finish" => Sigterm::Finish, "return" => Sigterm::Return };
    /// Worker with `--once`: exit status if a job failed.
    once_failed_exit: ExitStatus = ExitStatus::Zero, {
        "zero" => ExitStatus::Zero, "nonzero" => ExitStatus::Nonzero
    };
    /// Treatment of a `goal_id` that contains `|`.
    goal_id_with_bar: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// Writers: number of jobs for one `request_id`.
    same_request_id: SameRequestId = SameRequestId::Two, {
        "one" => SameRequestId::One, "two" => SameRequestId::Two
    };
    /// HTTP: treatment of a chunked body.
    chunked: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// HTTP: treatment of a content type other than JSON.
    content_type_other: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// HTTP: treatment of `?` after the path.
    query_string: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// HTTP: treatment of `Content-Length` beside chunks. If accepted, the length is ignored.
    length_and_chunked: Verdict = Verdict::Fail, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// HTTP: status of `GET /health` without the configured token.
    health_without_token: u16 = 200, { "200" => 200, "401" => 401 };
    /// Genesis: treatment of a write to an existing file.
    write_overwrite: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// Genesis: treatment of a write to a subfolder of the source folder.
    write_subfolder: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// Genesis: treatment of `..` in a path that stays inside the source folder.
    write_dotdot_inside: Verdict = Verdict::Fail, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// Genesis: treatment of a load under a loaded name.
    load_again: LoadAgain = LoadAgain::Replace, {
        "replace" => LoadAgain::Replace, "refuse" => LoadAgain::Refuse
    };
}

two! {
    /// See [`Choices::second_worker`].
    SecondWorker { Share, Refuse },
    /// See [`Choices::sigterm`].
    Sigterm { Finish, Return },
    /// See [`Choices::once_failed_exit`].
    ExitStatus { Zero, Nonzero },
    /// See [`Choices::same_request_id`].
    SameRequestId { One, Two },
    /// See [`Choices::load_again`].
    LoadAgain { Replace, Refuse },
}
