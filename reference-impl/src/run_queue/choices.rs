//! What the contract leaves open for run_queue, as values (contract §8 `[choices]`).

use super::Treat;
use crate::choices::{choices, two};
use crate::run_log::choices::Verdict;

choices! {
    /// Worker: `.x.json` and `.json`.
    dot_name: Treat = Treat::Leave, { "run" => Treat::Run, "leave" => Treat::Leave, "failed" => Treat::Fail };
    /// Worker: `X.JSON`.
    upper_case_suffix: Treat = Treat::Leave, {
        "run" => Treat::Run, "leave" => Treat::Leave, "failed" => Treat::Fail
    };
    /// Worker: a name that is not UTF-8.
    not_utf8_name: Treat = Treat::Run, { "run" => Treat::Run, "leave" => Treat::Leave, "failed" => Treat::Fail };
    /// Worker: a link with the name of a job.
    symlink: Treat = Treat::Leave, { "run" => Treat::Run, "leave" => Treat::Leave, "failed" => Treat::Fail };
    /// Worker: a folder, a FIFO or a socket with the name of a job; what is run so fails for having no text.
    special_file: Treat = Treat::Leave, { "run" => Treat::Run, "leave" => Treat::Leave, "failed" => Treat::Fail };
    /// Worker: a file that cannot be read; what is run so fails for having no text.
    unreadable: Treat = Treat::Fail, { "run" => Treat::Run, "leave" => Treat::Leave, "failed" => Treat::Fail };
    /// Worker: whether another may work on the same queue.
    second_worker: SecondWorker = SecondWorker::Share, {
        "share" => SecondWorker::Share, "refuse" => SecondWorker::Refuse
    };
    /// Worker: what becomes of the job in flight at SIGTERM.
    sigterm: Sigterm = Sigterm::Finish, { "finish" => Sigterm::Finish, "return" => Sigterm::Return };
    /// Worker that ends by itself: its status where a job failed.
    once_failed_exit: ExitStatus = ExitStatus::Zero, {
        "zero" => ExitStatus::Zero, "nonzero" => ExitStatus::Nonzero
    };
    /// A `goal_id` that holds `|`.
    goal_id_with_bar: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// Writers: jobs that came of the same `request_id`.
    same_request_id: SameRequestId = SameRequestId::Two, {
        "one" => SameRequestId::One, "two" => SameRequestId::Two
    };
    /// HTTP: a body in chunks.
    chunked: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// HTTP: another content type than JSON.
    content_type_other: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// HTTP: `?` behind the path.
    query_string: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// HTTP: a length beside chunks; it is not looked at.
    length_and_chunked: Verdict = Verdict::Fail, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// HTTP: status of `GET /health` without the token that is configured.
    health_without_token: u16 = 200, { "200" => 200, "401" => 401 };
    /// Genesis: writing a file that is there.
    write_overwrite: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// Genesis: writing below a folder of the source folder.
    write_subfolder: Verdict = Verdict::Accept, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// Genesis: `..` in a path that stays inside.
    write_dotdot_inside: Verdict = Verdict::Fail, { "accept" => Verdict::Accept, "refuse" => Verdict::Fail };
    /// Genesis: loading a name that is loaded.
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
