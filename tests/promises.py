"""What we promise people, the tests that hold us to it, and the checks that try to break it.

Each promise is a sentence that a person can rely on; the page docs/explanation/promises.md has the same
sentences.  `tests/architecture/test_promises.py` holds this list, that page and the tests to each
other: a test that is renamed or removed has to be renamed or replaced here as well.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PROMISES", "Promise"]


@dataclass(frozen=True, slots=True)
class Promise:
    """One sentence, and the tests that would fail if it were broken.

    Attributes:
        says: As it stands on the page.
        tests: File, relative to `tests`, and name of each.
        attacked: Checks of `scripts/deep` and files below `tests` that look for a way to break it:
            by every case of a list, every point of a run, or at random.
    """

    says: str
    tests: tuple[tuple[str, str], ...]
    attacked: tuple[str, ...] = ()


CHANGES = "workspace/test_changes.py"
WAITING = "workspace/test_waiting.py"
PAST = "workspace/test_past.py"
OWN = "faces/test_own_changes.py"
MANAGE = "tools/test_manage_files.py"
RECOVERY = "workspace/test_recovery.py"
KNOWN = "tools/test_what_a_session_knows.py"
STALE = "tools/test_stale_edits.py"
KINDS = "workspace/test_kinds.py"
ATTRIBUTES = "workspace/test_attributes.py"
LINKS = "tools/test_links_in_patches.py"
HISTORY = "workspace/test_history.py"
POLICY = "domain/test_policy.py"
REGISTRY = "tools/test_registry.py"
SERVER = "faces/test_seven_tools.py"
MACHINE = "properties/test_workspace_machine.py"
CRASH = "crash/test_kill.py"
APPROVING = "workspace/test_approving.py"
DRIFT = "properties/test_drift.py"
REFERENCE = "architecture/test_reference.py"
CODEC = "text/test_codec.py"
CODEC_PROPERTIES = "text/test_codec_properties.py"
FILES = "store/test_files.py"
PROCESSES = "store/test_processes.py"
PROPOSALS = "store/test_proposals.py"
PROTOCOL = "../packages/filepact-mcp/tests/test_mcp_protocol.py"
SCREEN = "../packages/filepact-cli/tests/test_cli_screen.py"
PLANTED = "hostile/test_planted.py"
REPOSITORIES = "workspace/test_repositories.py"
SEARCH = "workspace/test_search.py"
TRACKED = "agreement/test_git_tracked.py"
SHARED = "../packages/filepact-fleet/tests/test_shared.py"
WALK = "fs/test_walk.py"
RESOLVE = "fs/test_resolve.py"
FAULTS = "fs/test_faults.py"
HOOK_FAULTS = "../packages/filepact-hooks/tests/test_hook_faults.py"
AGREEMENT = "agreement/test_resolvers.py"
COMMIT = "workspace/test_commit.py"
EDITORS_TEXT = "../packages/filepact-acp/tests/test_editors_text.py"
PROXY = "../packages/filepact-acp/tests/proxy/test_proxy"
SERVICE = "../packages/filepact-diagnostics/tests/lsp/test_sessions_and_faults.py"
ORPHANS = "../packages/filepact-diagnostics/tests/lsp/test_no_orphans.py"
FORK_SERVER = "../packages/filepact-diagnostics/tests/lsp/test_forkserver.py"
FOLLOWING = "../packages/filepact-diagnostics/tests/semantic/test_following_changes.py"
SEMANTIC_FAULTS = "../packages/filepact-diagnostics/tests/semantic/test_server_faults.py"
RECEIPTS = "../packages/filepact-diagnostics/tests/semantic/test_receipts.py"
SOLUTION = "../packages/filepact-diagnostics/tests/solution/test_solution_servers.py"
SOLUTION_WRITES = "../packages/filepact-diagnostics/tests/solution/test_solution_writing.py"
PROGRAMS = "faces/test_cli_programs.py"
MCP_DIAGNOSTICS = "faces/test_mcp_diagnostics.py"
DIAGNOSING = "../packages/filepact-diagnostics/tests/test_language_servers.py"

PROMISES: dict[str, tuple[Promise, ...]] = {
    "Where an agent can reach": (
        Promise(
            "A path that leads out of the roots, by whatever way, is never opened.",
            (
                (CHANGES, "test_what_must_not_be_written_is_refused_by_code"),
                (RESOLVE, "test_a_name_that_leaves_the_root_is_blocked"),
                (RESOLVE, "test_a_link_that_leads_out_or_nowhere_is_refused_without_its_target"),
                (RESOLVE, "test_a_link_whose_expansion_is_longer_than_any_path_does_not_lead_out"),
                (FAULTS, "test_a_folder_exchanged_with_a_link_never_leads_out"),
                (AGREEMENT, "test_both_lead_to_the_same_place_or_refuse_in_the_same_words"),
                (WALK, "test_links_are_listed_and_never_followed"),
                (WALK, "test_a_folder_exchanged_for_a_link_is_not_entered"),
            ),
            attacked=(
                "corpus",
                "server",
                "command",
                "fuzz",
                "races",
                "hostile/test_removals.py",
            ),
        ),
        Promise(
            "Files under whose names keys and passwords are kept are neither read nor written, "
            "however the name is disguised.",
            (
                (POLICY, "test_secret_names_are_denied"),
                (POLICY, "test_a_disguised_secret_name_is_denied"),
                (SEARCH, "test_refused_files_are_not_found"),
                (SEARCH, "test_a_refused_file_is_never_searched"),
                (SEARCH, "test_ignored_and_refused_entries_are_not_drawn"),
            ),
            attacked=(
                "corpus",
                "server",
                "command",
                "disguises",
                "hostile/test_removals.py",
            ),
        ),
        Promise(
            "No answer tells an agent anything of what a file holds that it may not read, nor its "
            "size, its hash, or that a change would leave it as it is.",
            (
                (PLANTED, "test_nothing_of_a_planted_secret_is_seen"),
                (PLANTED, "test_nothing_of_it_is_seen_behind_an_editor"),
            ),
            attacked=("planted",),
        ),
        Promise(
            "The insides of version control are never changed.",
            (
                (POLICY, "test_version_control_internals_can_be_read_but_not_changed"),
                (REPOSITORIES, "test_no_order_of_ordinary_writes_makes_one"),
                (REPOSITORIES, "test_nor_does_one_change_of_all_files"),
                (REPOSITORIES, "test_nothing_in_one_that_is_there_is_changed"),
            ),
            attacked=(
                "corpus",
                "disguises",
            ),
        ),
        Promise(
            "A search looks at all that Git tracks, whatever its folder is called, and says what it "
            "has left out.",
            (
                (TRACKED, "test_a_folder_of_any_name_is_searched_as_far_as_it_is_tracked"),
                (TRACKED, "test_all_that_is_tracked_is_seen_and_nothing_that_git_ignores"),
                (SEARCH, "test_what_was_not_searched_is_told_as_far_as_the_search_was_about_it"),
                (SEARCH, "test_where_not_everything_was_looked_at_no_matches_is_not_said_alone"),
            ),
            attacked=("agreement/test_git_tracked.py",),
        ),
        Promise(
            "An agent that may only look is not even shown a tool that changes something.",
            (
                (REGISTRY, "test_tier_level_and_read_only_choose_what_is_shown"),
                (REGISTRY, "test_a_tool_that_is_not_shown_does_not_exist"),
                (SERVER, "test_fewer_tools_are_shown_when_asked"),
            ),
        ),
    ),
    "What a change does": (
        Promise(
            "Every byte outside an edit stays as it is: encoding, line ends, byte-order mark "
            "and mode are kept.",
            (
                (CHANGES, "test_an_overwrite_keeps_line_ends_encoding_and_mode"),
                (CHANGES, "test_latin_1_keeps_every_byte_outside_the_edit"),
                (CODEC, "test_only_the_bytes_of_the_edited_line_change"),
                (CODEC_PROPERTIES, "test_all_bytes_outside_the_edited_lines_are_what_they_were"),
            ),
            attacked=("text/test_codec_properties.py",),
        ),
        Promise(
            "A preview shows exactly the change that would be made, and makes none.",
            ((CHANGES, "test_a_dry_run_shows_the_same_diff_and_changes_nothing"),),
            attacked=(
                "drift",
                "hostile/test_views.py",
            ),
        ),
        Promise(
            "A change of several files is done whole or not at all.",
            (
                (CHANGES, "test_a_change_of_several_files_is_done_whole_or_not_at_all"),
                (COMMIT, "test_what_was_done_is_taken_back_with_the_very_files_that_were_there"),
                (COMMIT, "test_taking_back_makes_no_file_and_writes_none"),
            ),
            attacked=(
                "calls",
                "full",
                "cuts",
            ),
        ),
        Promise(
            "Edits of one file at the same time all survive.",
            (
                (CHANGES, "test_sixteen_edits_at_once_leave_sixteen_edits"),
                (CHANGES, "test_edits_of_one_file_by_two_sessions_are_both_kept"),
                (SERVER, "test_sixteen_edits_sent_at_once_leave_sixteen_edits"),
                (SERVER, "test_two_servers_with_many_edits_of_eight_agents_each_lose_none"),
            ),
            attacked=("bursts",),
        ),
        Promise(
            "A text that somebody changed since the agent read it is never silently overwritten.",
            (
                (CHANGES, "test_a_change_over_somebody_elses_later_one_keeps_both"),
                (CHANGES, "test_a_whole_write_over_the_same_lines_is_stale"),
                (KNOWN, "test_a_second_write_of_the_old_view_keeps_the_persons_line"),
                (KNOWN, "test_a_text_made_before_another_agents_change_does_not_take_it_back"),
            ),
            attacked=("histories",),
        ),
        Promise(
            "A change that was made for what the agent read is put where those lines are now, or refused.",
            (
                (STALE, "test_nothing_is_written_to_a_wrong_place"),
                (STALE, "test_what_can_be_told_is_done"),
                (STALE, "test_lines_that_stand_below_another_name_now_are_left_alone"),
            ),
            attacked=("text/test_locate_properties.py",),
        ),
        Promise(
            "What a patch deletes or renames is a symbolic link itself, and undo brings it back.",
            (
                (
                    LINKS,
                    "test_deleting_a_link_leaves_what_it_leads_to_and_undo_brings_it_back",
                ),
                (LINKS, "test_renaming_a_link_moves_the_link_and_undo_moves_it_back"),
                (CRASH, "test_a_killed_change_is_whole_or_not_there_after_recovery"),
            ),
        ),
        Promise(
            "A whole text does not remove lines that the agent was never shown, unless it says so.",
            (
                (
                    KNOWN,
                    "test_a_whole_write_after_the_reading_of_a_part_is_refused_with_the_way_out",
                ),
                (KNOWN, "test_a_line_that_was_cut_is_not_dropped_by_a_whole_write"),
            ),
        ),
        Promise(
            "In preview mode nothing changes before a person has said yes, and what was shown "
            "is what is done.",
            (
                (CHANGES, "test_a_preview_mode_change_waits_and_is_done_on_approval"),
                (SERVER, "test_a_preview_server_only_proposes_and_a_person_approves"),
            ),
            attacked=("drift",),
        ),
        Promise(
            "What a person approved is done to the byte as it stood under its id, or shown to them again, whoever wrote to "
            "the files since.",
            (
                (
                    APPROVING,
                    "test_a_change_whose_file_moved_is_fitted_anew_shown_and_done_only_then",
                ),
                (APPROVING, "test_an_edit_that_was_allowed_cannot_ride_on_an_approval_of_another"),
                (
                    "../packages/filepact-cli/tests/test_review.py",
                    "test_where_others_have_changed_the_file_elsewhere_nothing_is_done_and_it_is_shown_again",
                ),
                (DRIFT, "test_what_was_not_shown_is_not_done"),
            ),
            attacked=("drift",),
        ),
        Promise(
            "What a person approved is done, or waits again: after a crash, after somebody else's save, on a full disk.",
            (
                (CRASH, "test_a_killed_change_is_whole_or_not_there_after_recovery"),
                (APPROVING, "test_a_save_in_the_last_moment_leaves_the_change_waiting"),
                (APPROVING, "test_an_approval_on_a_full_disk_is_done_or_waits_again"),
            ),
            attacked=(
                "calls",
                "drift",
            ),
        ),
        Promise(
            "What an agent has proposed is what it sees, alone, until you decide; what it adds to it has a new id, and the "
            "old one can no longer be approved.",
            (
                (WAITING, "test_a_session_reads_what_it_has_proposed_and_others_read_the_disk"),
                (WAITING, "test_what_was_superseded_can_be_neither_approved_nor_rejected"),
                (OWN, "test_an_agent_goes_on_with_what_waits_and_a_person_sees_one_change"),
            ),
            attacked=("drift",),
        ),
        Promise(
            "An agent sees, shows and takes back its own changes, and nobody else's.",
            (
                (PAST, "test_what_others_did_can_be_neither_shown_nor_taken_back"),
                (OWN, "test_an_agent_lists_shows_and_takes_back_its_own_changes"),
            ),
        ),
        Promise(
            "A folder that is moved or removed comes back as it was, with its permissions, owners, access lists, attributes and the empty folders in it; what cannot be set is said, and gives nobody more rights.",
            (
                (
                    ATTRIBUTES,
                    "test_a_folder_that_went_or_was_moved_comes_back_with_all_that_it_had",
                ),
                (ATTRIBUTES, "test_who_may_not_set_an_owner_or_a_list_gives_nobody_more_rights"),
                (MANAGE, "test_a_folder_is_moved_with_all_that_is_in_it_and_back"),
                (MANAGE, "test_a_folder_is_deleted_with_all_that_is_in_it_and_brought_back"),
                (CRASH, "test_a_killed_change_is_whole_or_not_there_after_recovery"),
            ),
            attacked=("crash/test_kill.py",),
        ),
        Promise(
            "A name that becomes something else (file, folder with all that is in it, link) is done, taken back and done again as a whole.",
            (
                (KINDS, "test_whatever_becomes_of_names_goes_back_and_forth_as_one_operation"),
                (KINDS, "test_partly_leaves_what_the_person_has_made_of_a_name_and_says_so"),
                ("faces/test_kinds.py", "test_what_a_program_makes_of_names_goes_back_and_forth"),
            ),
        ),
        Promise(
            "A refused proposal changes nothing, and the reason stays with it.",
            ((CHANGES, "test_a_rejected_proposal_keeps_the_reason_and_changes_nothing"),),
        ),
    ),
    "Going back": (
        Promise(
            "Everything an agent changed through filepact is in the log and can be taken back.",
            (
                (CHANGES, "test_a_new_file_is_written_and_journalled"),
                (HISTORY, "test_undo_and_redo_walk_back_and_forth"),
                (SERVER, "test_all_seven_tools_do_their_work_and_everything_can_be_taken_back"),
            ),
            attacked=(
                "calls",
                "full",
                "cuts",
                "histories",
            ),
        ),
        Promise(
            "Undo never overwrites what someone else wrote since.",
            (
                (HISTORY, "test_undo_never_overwrites_what_somebody_else_wrote_since"),
                (HISTORY, "test_undo_of_a_deletion_is_refused_when_the_name_is_taken"),
                (MACHINE, "TestWorkspaceMachine"),
            ),
            attacked=(
                "histories",
                "cuts",
            ),
        ),
        Promise(
            "Undo of one operation keeps later edits of other lines.",
            ((HISTORY, "test_undo_of_one_operation_keeps_later_edits"),),
            attacked=("histories",),
        ),
        Promise(
            "What an agent did for one request goes back as a whole, and what you did meanwhile stays.",
            (
                ("properties/test_turns.py", "test_only_the_agents_changes_go_back"),
                ("properties/test_turns.py", "test_a_kill_at_any_moment_loses_nothing_of_a_person"),
                ("faces/test_undo_beside_others.py", "test_what_the_table_says_is_true"),
            ),
            attacked=(
                "turns",
                "killed",
            ),
        ),
        Promise(
            "An undo can be undone.",
            ((HISTORY, "test_undo_of_an_undo_is_a_redo_and_undo_of_a_redo_undoes_the_original"),),
            attacked=(
                "histories",
                "calls",
            ),
        ),
        Promise(
            "Restoring a checkpoint keeps what a person wrote elsewhere.",
            ((HISTORY, "test_restore_keeps_what_a_person_wrote_elsewhere_in_the_file"),),
            attacked=("histories",),
        ),
    ),
    "Between an editor and an agent": (
        Promise(
            "What you have typed and not saved is what the agent reads, and no change of its loses "
            "any of it.",
            (
                (
                    f"{PROXY}_files.py",
                    "test_unsaved_text_is_read_merged_into_the_file_and_stays_when_the_change_is_undone",
                ),
                (
                    f"{PROXY}_files.py",
                    "test_what_a_person_types_after_the_agent_has_read_is_kept",
                ),
                (f"{PROXY}_tools.py", "test_tools_see_and_change_what_the_editor_shows"),
                (EDITORS_TEXT, "test_what_is_typed_while_the_person_is_asked_is_kept"),
                (EDITORS_TEXT, "test_what_is_typed_while_the_disk_is_written_is_kept"),
                (
                    EDITORS_TEXT,
                    "test_what_is_typed_after_the_first_answer_of_the_editor_is_kept_by_a_tool",
                ),
                (EDITORS_TEXT, "test_what_is_typed_before_a_change_is_taken_back_is_kept"),
                (
                    EDITORS_TEXT,
                    "test_an_editor_that_is_late_is_not_taken_for_one_that_shows_the_disk",
                ),
            ),
            attacked=(
                "agents",
                EDITORS_TEXT,
            ),
        ),
        Promise(
            "What your editor refuses to show or to take is neither read nor written past it.",
            (
                (
                    EDITORS_TEXT,
                    "test_what_an_editor_refuses_to_show_is_not_served_from_the_disk",
                ),
                (
                    EDITORS_TEXT,
                    "test_a_person_may_take_longer_over_a_change_than_an_editor_to_answer",
                ),
            ),
            attacked=(EDITORS_TEXT,),
        ),
        Promise(
            "What was taken back does not come again from an editor that still shows it.",
            (
                (EDITORS_TEXT, "test_a_change_that_is_taken_back_in_a_terminal_stays_so"),
                (
                    EDITORS_TEXT,
                    "test_what_another_program_wrote_under_a_buffer_that_nobody_typed_in_counts",
                ),
            ),
            attacked=(EDITORS_TEXT,),
        ),
        Promise(
            "What is not about files passes byte for byte and in order.",
            (
                (
                    f"{PROXY}_traffic.py",
                    "test_what_is_not_about_files_passes_byte_for_byte_and_in_order",
                ),
            ),
            attacked=("messages",),
        ),
        Promise(
            "What the rules deny is refused by what an option means, never by its place, and nobody "
            "is asked.",
            (
                (
                    f"{PROXY}_permissions.py",
                    "test_what_the_rules_deny_is_refused_by_kind_and_no_person_is_asked",
                ),
            ),
        ),
        Promise(
            "A change is dropped when its turn is cancelled before the editor has taken it.",
            (
                (
                    f"{PROXY}_files.py",
                    "test_a_held_write_is_dropped_when_the_turn_is_cancelled",
                ),
            ),
        ),
        Promise(
            "What an agent writes past the protocol in its turn is in the log, and can be taken back "
            "as far as what was there before had been read.",
            (
                (
                    f"{PROXY}_watch.py",
                    "test_what_is_written_in_a_turn_is_seen_and_undone_and_the_persons_own_is_not",
                ),
                (
                    "workspace/test_external.py",
                    "test_a_turn_that_begins_before_the_files_are_known_is_seen_without_contents",
                ),
                (
                    "workspace/test_external.py",
                    "test_a_persons_new_file_is_never_removed_with_what_an_agent_wrote_into_it",
                ),
            ),
            attacked=("agents",),
        ),
        Promise(
            "What filepact asked a person, what the rules refused and what agents read through it "
            "can be found in the log.",
            (
                (
                    f"{PROXY}_record.py",
                    "test_reads_refusals_and_what_filepact_asked_itself_can_be_found_afterwards",
                ),
            ),
        ),
        Promise(
            "What a person allows for longer than once counts for that session, for no more than "
            "was asked, and against no denial.",
            (
                (
                    f"{PROXY}_permissions.py",
                    "test_what_is_allowed_for_a_session_is_no_yes_to_what_a_rule_asks_or_denies",
                ),
                (f"{PROXY}_permissions.py", "test_another_session_is_asked_of_its_own"),
            ),
        ),
        Promise(
            "Nothing that the agent started is left on Linux when the editor or filepact has gone; elsewhere, nothing of its process group.",
            ((f"{PROXY}_process.py", "test_nothing_that_the_agent_started_is_left"),),
        ),
    ),
    "Where an agent has tools of its own": (
        Promise(
            "Whatever a hook needs may break, and nothing is opened by it that the rules deny.",
            (
                (HOOK_FAULTS, "test_what_is_broken_opens_nothing"),
                (HOOK_FAULTS, "test_a_field_of_an_event_that_is_wrong_or_missing_opens_nothing"),
                (HOOK_FAULTS, "test_a_program_that_cannot_load_its_parts_refuses"),
            ),
            ("../packages/filepact-hooks/tests/test_hook_faults.py",),
        ),
        Promise(
            "Below a program that is known as an agent's, nothing is decided that a person decides.",
            (("faces/test_person.py", "test_what_an_agents_program_calls_decides_nothing"),),
        ),
        Promise(
            "What a call has changed that should have waited for a person is told, with what takes it back.",
            (
                (
                    "faces/test_unapproved.py",
                    "test_a_command_that_changes_what_steers_or_runs_is_told_and_taken_back",
                ),
            ),
        ),
    ),
    "What language servers say": (
        Promise(
            "What is told of a change's errors is about the text as it is now, or it is not told.",
            (
                (
                    "../packages/filepact-diagnostics/tests/lsp/test_random_edits.py",
                    "test_no_stale_answer_passes_for_fresh",
                ),
                (
                    "../packages/filepact-diagnostics/tests/lsp/test_sync_with_real_servers.py",
                    "test_a_server_kept_in_step_says_what_a_new_one_says",
                ),
                (SERVICE, "test_what_is_not_proven_is_not_fresh_and_shows_no_list"),
                (FOLLOWING, "test_what_another_program_wrote_is_noticed"),
            ),
            attacked=(
                "stale",
                "sync",
                "bursts",
            ),
        ),
        Promise(
            "A preview of errors touches no file, and leaves nothing in a server.",
            (
                (FOLLOWING, "test_a_preview_tells_the_difference_and_leaves_nothing"),
                (SERVICE, "test_a_server_that_keeps_a_proposed_text_is_stopped"),
                (
                    SEMANTIC_FAULTS,
                    "test_previews_during_changes_of_the_same_file_leave_no_trace",
                ),
            ),
            attacked=("stale",),
        ),
        Promise(
            "Whatever a server does or fails to do, no write is lost or held up by it for longer than "
            "you have set.",
            (
                (SEMANTIC_FAULTS, "test_a_fault_costs_no_write_and_proves_nothing"),
                (
                    SOLUTION,
                    "test_whatever_a_server_does_the_file_is_written_and_the_answer_says_so",
                ),
                (RECEIPTS, "test_a_change_that_cannot_be_checked_in_time_is_done_and_says_so"),
                (MCP_DIAGNOSTICS, "test_a_server_that_fails_does_not_stop_a_change"),
            ),
            attacked=(
                "../packages/filepact-diagnostics/tests/semantic/test_server_faults.py",
                "../packages/filepact-diagnostics/tests/semantic/test_races.py",
            ),
        ),
        Promise(
            "What could not be said in time is told later.",
            ((RECEIPTS, "test_what_comes_late_is_told_with_a_later_answer"),),
        ),
        Promise(
            "Where new errors are refused, a change that is known to bring some is not written.",
            (
                (RECEIPTS, "test_new_errors_can_be_refused"),
                (RECEIPTS, "test_what_cannot_be_checked_in_time_is_refused_where_new_errors_are"),
                (RECEIPTS, "test_errors_in_files_that_depend_on_a_change_are_refused_too"),
                (RECEIPTS, "test_a_person_can_be_asked_about_new_errors"),
                (DIAGNOSING, "test_what_an_administrator_says_is_not_loosened"),
            ),
        ),
        Promise(
            "No language server is started from a folder that agents may change, or because a "
            "project's file says so.",
            (
                (PROGRAMS, "test_a_program_in_a_root_is_never_found_though_the_path_leads_there"),
                (PROGRAMS, "test_no_link_leads_to_a_program_in_a_root"),
                (PROGRAMS, "test_a_program_in_another_project_of_the_journal_is_not_started"),
                (DIAGNOSING, "test_a_project_s_file_has_no_say_in_which_programs_run"),
                (
                    "../packages/filepact-diagnostics/tests/lsp/test_nothing_from_the_project.py",
                    "test_a_known_server_runs_nothing_that_lies_in_the_project",
                ),
            ),
        ),
        Promise(
            "No language server sees the keys and tokens in your environment.",
            (
                (PROGRAMS, "test_a_server_sees_no_secret_and_nothing_that_nobody_chose"),
                (MCP_DIAGNOSTICS, "test_a_server_sees_no_secret_of_its_person"),
            ),
        ),
        Promise(
            "A server for agents that has confined itself can start nothing but the language "
            "servers that were agreed upon before.",
            (
                (FORK_SERVER, "test_only_what_was_agreed_upon_is_started"),
                (FORK_SERVER, "test_whoever_speaks_nonsense_to_it_ends_it"),
            ),
        ),
        Promise(
            "No language server outlives the program that it was started for; nor does what it started, on Linux, or elsewhere in its process group.",
            (
                (ORPHANS, "test_nothing_is_left_after_the_parent_was_killed_many_times"),
                (ORPHANS, "test_a_server_ends_when_its_supervisor_is_killed"),
                (ORPHANS, "test_a_server_that_crashes_leaves_nothing_it_has_started"),
                (ORPHANS, "test_where_no_children_are_told_of_a_group_ends_as_a_whole"),
                (MCP_DIAGNOSTICS, "test_servers_end_with_the_server_for_agents"),
            ),
            attacked=("orphans",),
        ),
        Promise(
            "A whole file sent to the toolset for solutions is only shown until applying it is asked for.",
            (
                (SOLUTION_WRITES, "test_a_preview_answers_field_for_field_and_changes_nothing"),
                (SOLUTION_WRITES, "test_what_is_applied_is_on_the_disk_and_can_be_undone"),
            ),
        ),
    ),
    "When things go wrong": (
        Promise(
            "Killed at any moment, a change is whole or not there after the next start.",
            (
                (CRASH, "test_a_killed_change_is_whole_or_not_there_after_recovery"),
                (FAULTS, "test_a_kill_before_any_call_leaves_the_old_file_or_the_new_one"),
                (FAULTS, "test_an_error_at_any_call_is_told_as_it_is"),
            ),
            attacked=(
                "calls",
                "cuts",
            ),
        ),
        Promise(
            "What was answered as done is never taken back by a start after a power cut, whatever you have made of its files.",
            (
                (
                    RECOVERY,
                    "test_an_answered_change_is_never_taken_back_whatever_a_person_made_of_one_file",
                ),
                (RECOVERY, "test_what_a_change_left_tells_what_became_of_it"),
            ),
            attacked=("cuts",),
        ),
        Promise(
            "What cannot be confirmed is said, and mended by the next call.",
            (
                (
                    COMMIT,
                    "test_a_change_whose_end_cannot_be_told_is_done_and_the_next_call_tells_it",
                ),
                (COMMIT, "test_the_journal_s_refusal_never_hides_why_a_change_was_taken_back"),
            ),
            attacked=(
                "calls",
                "full",
            ),
        ),
        Promise(
            "What another program writes into a file while it is replaced is kept.",
            (
                (COMMIT, "test_a_program_that_had_the_old_file_open_loses_nothing"),
                (RECOVERY, "test_foreign_text_under_a_temporary_name_is_kept_and_told"),
            ),
            attacked=("fs/test_faults.py",),
        ),
        Promise(
            "What was recorded is still there after a restart.",
            (
                (HISTORY, "test_the_journal_survives_a_restart"),
                (PROCESSES, "test_what_a_killed_process_was_told_is_in_the_journal"),
                (PROPOSALS, "test_a_proposal_comes_back_as_it_was_after_a_restart"),
            ),
            attacked=(
                "calls",
                "cuts",
            ),
        ),
        Promise(
            "Earlier contents of your files are kept where only you can read them.",
            ((FILES, "test_a_new_journal_is_for_its_owner_alone"),),
        ),
        Promise(
            "Nothing that a file or an agent wrote can steer your terminal.",
            ((SCREEN, "test_a_terminal_gets_no_character_that_steers_or_hides"),),
            attacked=("hostile/test_views.py",),
        ),
        Promise(
            "Every refusal has a code that programs can rely on, and says what to do next.",
            (
                (SERVER, "test_every_error_code_is_reached_over_the_protocol"),
                (REFERENCE, "test_every_error_says_when_it_comes_and_what_to_do_next"),
            ),
        ),
        Promise(
            "An unexpected mistake in filepact never tells an agent what an exception said.",
            (
                (REGISTRY, "test_any_other_error_is_logged_and_not_told"),
                (PROTOCOL, "test_a_session_that_cannot_be_made_is_an_error_that_tells_nothing"),
            ),
        ),
    ),
    "On several machines": (
        Promise(
            "What was told to be done is in the shared workspace, whatever is killed afterwards, and nothing is done twice.",
            (
                (
                    "fleet/test_fleet.py",
                    "test_through_kills_of_everything_nothing_is_lost_doubled_or_stale",
                ),
                (SHARED, "test_sixteen_writers_on_two_machines_lose_nothing"),
            ),
            attacked=("fleet",),
        ),
        Promise(
            "A bucket or a folder that has lost its files is never taken for an empty workspace, and an older or another"
            " shared workspace never for yours.",
            (
                (
                    SHARED,
                    "test_another_workspace_at_the_place_is_not_taken_for_the_one_that_was_there",
                ),
                (SHARED, "test_an_older_state_that_was_put_back_is_not_taken_for_the_newest"),
                (SHARED, "test_a_folder_that_was_wiped_is_neither_shown_as_empty_nor_sent"),
                (
                    "../packages/filepact-fleet/tests/test_gone_buckets.py",
                    "test_a_bucket_that_goes_under_a_gateway_loses_nothing_and_is_not_taken_for_empty",
                ),
            ),
        ),
        Promise(
            "A session that its client has ended is ended at every gateway that shares it.",
            (
                (
                    "../packages/filepact-gateway/tests/test_store.py",
                    "test_a_session_that_was_ended_is_known_everywhere_until_nobody_takes_it_anyway",
                ),
            ),
            attacked=("fleet",),
        ),
    ),
}
