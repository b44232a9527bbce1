package words

// The keys of every command: the tree, its flags, wrong use.
const (
	RootShort       Key = "cli_root"
	RootLong        Key = "cli_root_long"
	HelpUsage       Key = "cli_usage"
	HelpCommands    Key = "cli_commands"
	HelpFlags       Key = "cli_flags"
	HelpMore        Key = "cli_more"
	HelpShort       Key = "cli_help"
	FlagHelp        Key = "cli_flag_help"
	FlagVersion     Key = "cli_flag_version"
	FlagJSON        Key = "cli_flag_json"
	UnknownCommand  Key = "cli_unknown_command"
	WrongArguments  Key = "cli_wrong_arguments"
	UnknownFlag     Key = "cli_unknown_flag"
	FlagWantsValue  Key = "cli_flag_wants_value"
	FlagWrongValue  Key = "cli_flag_wrong_value"
	WrongUse        Key = "cli_wrong_use"
	Fault           Key = "cli_fault"
	NoDirectories   Key = "cli_no_directories"
	BadConfig       Key = "cli_bad_config"
	CompletionShort Key = "cli_completion"
	CompletionLong  Key = "cli_completion_long"
	UnknownShell    Key = "cli_unknown_shell"
)

// The keys of reaching a core.
const (
	NoCore         Key = "cli_no_core"
	NoAnswerWithin Key = "cli_no_answer_within"
	NoReply        Key = "cli_no_reply"
	BadReply       Key = "cli_bad_reply"
	CoreSaid       Key = "cli_core_said"
	StillThere     Key = "cli_still_there"
)

// The keys of serve, status and stop.
const (
	ServeShort      Key = "cli_serve"
	ServeLong       Key = "cli_serve_long"
	NotServing      Key = "cli_not_serving"
	ServingEnded    Key = "cli_serving_ended"
	LogGone         Key = "cli_log_gone"
	LogLostEnd      Key = "cli_log_lost_end"
	KeyDamaged      Key = "cli_key_damaged"
	LogSilent       Key = "cli_log_silent"
	OlderCore       Key = "cli_older_core"
	StatusShort     Key = "cli_status"
	StatusCore      Key = "cli_status_core"
	StatusVersion   Key = "cli_status_version"
	StatusProcess   Key = "cli_status_process"
	StatusMode      Key = "cli_status_mode"
	StatusSessions  Key = "cli_status_sessions"
	StatusOpen      Key = "cli_status_open"
	StatusFrontends Key = "cli_status_frontends"
	StatusLog       Key = "cli_status_log"
	StatusRules     Key = "cli_status_rules"
	LogOf           Key = "cli_log_of"
	RulesCount      Key = "cli_rules_count"
	RulesNone       Key = "cli_rules_none"
	RulesBroken     Key = "cli_rules_broken"
	StopShort       Key = "cli_stop"
	StopLong        Key = "cli_stop_long"
)

// The keys of questions, answer and sessions.
const (
	QuestionsShort Key = "cli_questions"
	QuestionsLong  Key = "cli_questions_long"
	FlagWatch      Key = "cli_flag_watch"
	AnswerShort    Key = "cli_answer"
	AnswerLong     Key = "cli_answer_long"
	FlagText       Key = "cli_flag_text"
	NotAnID        Key = "cli_not_an_id"
	NotAnOutcome   Key = "cli_not_an_outcome"
	NotAnswered    Key = "cli_not_answered"
	Accepted       Key = "cli_accepted"
	SessionsShort  Key = "cli_sessions"
	SessionsLong   Key = "cli_sessions_long"
	SessionOf      Key = "cli_session_of"
	NoSessions     Key = "cli_no_sessions"
)

// The keys of demo.
const (
	DemoShort       Key = "cli_demo"
	DemoLong        Key = "cli_demo_long"
	FlagAnswer      Key = "cli_flag_answer"
	FlagTimeout     Key = "cli_flag_timeout"
	FlagDemoDir     Key = "cli_flag_demo_dir"
	DemoAnswer      Key = "cli_demo_answer"
	DemoTimeout     Key = "cli_demo_timeout"
	DemoTemporary   Key = "cli_demo_temporary"
	DemoWants       Key = "cli_demo_wants"
	DemoNobody      Key = "cli_demo_nobody"
	DemoReason      Key = "cli_demo_reason"
	DemoLeft        Key = "cli_demo_left"
	DemoTold        Key = "cli_demo_told"
	DemoWritten     Key = "cli_demo_written"
	DemoGone        Key = "cli_demo_gone"
	PromptEnded     Key = "prompt_ended"
	StoryOpen       Key = "cli_story_open"
	StoryRecheck    Key = "cli_story_recheck"
	StoryUnanswered Key = "cli_story_unanswered"
	StoryBlocked    Key = "cli_story_blocked"
	Somebody        Key = "cli_somebody"
)

// The keys of hooks.
const (
	HooksShort     Key = "cli_hooks"
	HooksLong      Key = "cli_hooks_long"
	FlagDir        Key = "cli_flag_dir"
	NoDirectory    Key = "cli_no_directory"
	NoHooks        Key = "cli_no_hooks"
	FileBroken     Key = "cli_file_broken"
	HookOff        Key = "cli_hook_off"
	HookRuns       Key = "cli_hook_runs"
	ListShort      Key = "cli_hooks_list"
	ListLong       Key = "cli_hooks_list_long"
	CheckShort     Key = "cli_hooks_check"
	CheckLong      Key = "cli_hooks_check_long"
	FlagStrict     Key = "cli_flag_strict"
	CheckClean     Key = "cli_check_clean"
	CheckFound     Key = "cli_check_found"
	InitShort      Key = "cli_hooks_init"
	InitLong       Key = "cli_hooks_init_long"
	FlagPack       Key = "cli_flag_pack"
	FlagInitDir    Key = "cli_flag_init_dir"
	UnknownPack    Key = "cli_unknown_pack"
	InitExists     Key = "cli_init_exists"
	InitNotWritten Key = "cli_init_not_written"
	InitWritten    Key = "cli_init_written"
	InitNext       Key = "cli_init_next"
	InitNextTrust  Key = "cli_init_next_trust"
)

// The keys of trusting a project's hooks.
const (
	TrustShort       Key = "cli_hooks_trust"
	TrustLong        Key = "cli_hooks_trust_long"
	FlagYes          Key = "cli_flag_yes"
	NothingToTrust   Key = "cli_nothing_to_trust"
	TrustMeans       Key = "cli_trust_means"
	TrustQuestion    Key = "cli_trust_question"
	TrustWantsYes    Key = "cli_trust_wants_yes"
	NotTrusted       Key = "cli_not_trusted"
	TrustNotKept     Key = "cli_trust_not_kept"
	ChangedMeanwhile Key = "cli_changed_meanwhile"
	TrustedAlready   Key = "cli_trusted_already"
	Trusted          Key = "cli_trusted"
	UntrustShort     Key = "cli_hooks_untrust"
	UntrustLong      Key = "cli_hooks_untrust_long"
	Untrusted        Key = "cli_untrusted"
)

// The keys of the dry run.
const (
	RunShort          Key = "cli_hooks_run"
	RunLong           Key = "cli_hooks_run_long"
	FlagRunDir        Key = "cli_flag_run_dir"
	UnknownEvent      Key = "cli_unknown_event"
	RunWantsPayload   Key = "cli_run_wants_payload"
	RunTooLarge       Key = "cli_run_too_large"
	RunBadPayload     Key = "cli_run_bad_payload"
	RunWantsMember    Key = "cli_run_wants_member"
	RunOtherEvent     Key = "cli_run_other_event"
	RunUntrusted      Key = "cli_run_untrusted"
	RunNoHooks        Key = "cli_run_no_hooks"
	RunFailedOpen     Key = "cli_run_failed_open"
	Millis            Key = "cli_millis"
	WouldAllow        Key = "cli_would_allow"
	WouldWatch        Key = "cli_would_watch"
	WouldBlock        Key = "cli_would_block"
	WouldRefuse       Key = "cli_would_refuse"
	WouldAsk          Key = "cli_would_ask"
	WouldAskThenBlock Key = "cli_would_ask_then_block"
	WouldAskTwice     Key = "cli_would_ask_twice"
)

// The keys of the small programs.
const (
	ProgramMissing Key = "cli_program_missing"
	CannotRun      Key = "cli_cannot_run"
	ACPUsage       Key = "cli_acp_usage"
	ACPNoAgent     Key = "cli_acp_no_agent"
)
