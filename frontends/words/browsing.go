package words

// The keys of the list and of the pages beside it.
const (
	Help         Key = "help"
	Tick         Key = "tick"
	TickedCount  Key = "ticked_count"
	TickedHidden Key = "ticked_hidden"
	TickAll      Key = "tick_all"
	Untick       Key = "untick"
	OpenTicked   Key = "open_ticked"
	WaitingOf    Key = "waiting_of"
	EndsIn       Key = "ends_in"
	EarlierCut   Key = "earlier_cut"
	ToList       Key = "to_list"
	HooksPane    Key = "hooks_pane"
	Receipt      Key = "receipt"
	Waiting      Key = "waiting"
	Scroll       Key = "scroll"
	Details      Key = "details"
	Answers      Key = "answers"
	YouAnswer    Key = "you_answer"
	PutAside     Key = "put_aside"
	WhoTook      Key = "who_took"
	SaidWords    Key = "said_words"
	NoAnswerIn   Key = "no_answer_in"
	RuleDecided  Key = "rule_decided"
	RuleShort    Key = "rule_short"
	RuleRefused  Key = "rule_refused"
	NotAllowed   Key = "not_allowed"
	Milliseconds Key = "milliseconds"
	UnknownMeans Key = "unknown_means"
	LineGone     Key = "line_gone"
	Calls        Key = "calls"

	MouseHere     Key = "mouse_here"
	MouseTerminal Key = "mouse_terminal"
)

// The keys of the names of fields.
const (
	FieldDecided Key = "field_decided"
	FieldBecame  Key = "field_became"
	FieldAbout   Key = "field_about"
	FieldAllowed Key = "field_allowed"
	FieldRan     Key = "field_ran"
	FieldTook    Key = "field_took"
	FieldWaited  Key = "field_waited"
	FieldEnded   Key = "field_ended"
	FieldEndedAt Key = "field_ended_at"
	FieldAt      Key = "field_at"
	FieldOutcome Key = "field_outcome"
	FieldEvent   Key = "field_event"
	FieldMode    Key = "field_mode"
	FieldExit    Key = "field_exit"
	FieldStderr  Key = "field_stderr"
)

// The keys of the hooks pane.
const (
	RunCount      Key = "run_count"
	NoRuns        Key = "no_runs"
	RunGone       Key = "run_gone"
	ReadingOutput Key = "reading_output"
	Running       Key = "running"
	CallRejected  Key = "call_rejected"
	FailedOpen    Key = "failed_open"
	RunRan        Key = "run_ran"
	RunFailed     Key = "run_failed"
	RunTimedOut   Key = "run_timed_out"
	RunMissing    Key = "run_missing"
	RunBadVerdict Key = "run_bad_verdict"
	RunAbandoned  Key = "run_abandoned"
	RunDetached   Key = "run_detached"
)

// The keys of help.
const (
	HelpTitle     Key = "help_title"
	HelpList      Key = "help_list"
	HelpQuestion  Key = "help_question"
	HelpSigns     Key = "help_signs"
	HelpMove      Key = "help_move"
	HelpOpen      Key = "help_open"
	HelpTick      Key = "help_tick"
	HelpTickAll   Key = "help_tick_all"
	HelpNext      Key = "help_next"
	HelpQuit      Key = "help_quit"
	HelpTab       Key = "help_tab"
	HelpFilter    Key = "help_filter"
	HelpHooks     Key = "help_hooks"
	HelpMouse     Key = "help_mouse"
	HelpWhy       Key = "help_why"
	HelpLater     Key = "help_later"
	HelpScroll    Key = "help_scroll"
	HelpFocus     Key = "help_focus"
	HelpPager     Key = "help_pager"
	HelpCopy      Key = "help_copy"
	HelpTurn      Key = "help_turn"
	SignWaiting   Key = "sign_waiting"
	SignRunning   Key = "sign_running"
	SignWentOn    Key = "sign_went_on"
	SignRefused   Key = "sign_refused"
	SignNoAnswer  Key = "sign_no_answer"
	SignWithdrawn Key = "sign_withdrawn"
	SignNobody    Key = "sign_nobody"
)

// browsing is read only: what the list, the history, the hooks pane and help say.
var browsing = map[Key]text{
	Help:         {"help", "帮助"},
	Tick:         {"tick", "勾选"},
	TickedCount:  {"%d ticked", "已勾选 %d 个"},
	TickedHidden: {"%d ticked, %d not shown", "已勾选 %d 个，其中 %d 个未显示"},
	TickAll:      {"all", "全选"},
	Untick:       {"untick", "取消勾选"},
	OpenTicked:   {"open ticked", "打开已勾选项"},
	WaitingOf:    {"%d of %d waiting", "%[2]d 个待答中的 %[1]d 个"},
	EndsIn:       {"1 ends in %s", "1 个将在 %s 后结束"},
	EarlierCut:   {"%s · %d of %d", "%s · 显示 %d / %d"},
	ToList:       {"list", "列表"},
	HooksPane:    {"hooks", "钩子"},
	Receipt:      {"receipt", "回执"},
	Waiting:      {"waiting", "待答"},
	Scroll:       {"scroll", "滚动"},
	Details:      {"details", "详情"},
	Answers:      {"%s answers", "%s 正在回答"},
	YouAnswer:    {"you answer", "你正在回答"},
	PutAside:     {"words kept", "留言已保留"},
	WhoTook:      {"%s, %s", "%s，%s"},
	SaidWords:    {"%s: “%s”", "%s：“%s”"},
	NoAnswerIn:   {"no answer in %s", "%s 内无人回答"},
	RuleDecided:  {"rule %s, no question", "规则 %s，未询问"},
	RuleShort:    {"rule %s", "规则 %s"},
	NotAllowed:   {"not what was allowed", "与获准的内容不符"},
	RuleRefused:  {"refused by rule %s", "被规则 %s 拒绝"},
	Milliseconds: {"%s ms", "%s 毫秒"},
	UnknownMeans: {
		"The agent never reported what became of it. It is not run again by itself.",
		"代理没有报告运行结果。不会自动再次运行。",
	},
	LineGone: {"This operation is no longer kept here.", "这里不再保留此操作。"},
	Calls:    {"%s of %s waits for you", "%[2]s 的 %[1]s 在等你回答"},

	MouseHere:     {"the mouse works here; m gives it back to the terminal", "鼠标在此界面可用；按 m 交还终端"},
	MouseTerminal: {"the mouse selects text in the terminal; m takes it back", "鼠标用于在终端中选择文字；按 m 收回"},

	FieldDecided: {"decided", "决定"},
	FieldBecame:  {"then", "之后"},
	FieldAbout:   {"about", "内容"},
	FieldAllowed: {"allowed", "获准内容"},
	FieldRan:     {"what ran", "实际运行"},
	FieldTook:    {"took", "用时"},
	FieldWaited:  {"waited in line", "排队用时"},
	FieldEnded:   {"answered at", "回答时间"},
	FieldEndedAt: {"ended at", "结束时间"},
	FieldAt:      {"last news", "最近消息"},
	FieldOutcome: {"outcome", "结果"},
	FieldEvent:   {"event", "事件"},
	FieldMode:    {"mode", "方式"},
	FieldExit:    {"exit status", "退出状态"},
	FieldStderr:  {"stderr", "标准错误"},

	RunCount:      {"runs: %d", "运行 %d 次"},
	NoRuns:        {"No hook has run yet.", "还没有钩子运行过。"},
	RunGone:       {"This run is no longer kept here.", "这里不再保留此次运行。"},
	ReadingOutput: {"reading it", "正在读取"},
	Running:       {"running", "运行中"},
	CallRejected:  {"call rejected", "调用被拒"},
	FailedOpen:    {"failed open", "失败后放行"},
	RunRan:        {"ran", "已运行"},
	RunFailed:     {"failed", "失败"},
	RunTimedOut:   {"took too long", "超时"},
	RunMissing:    {"its program is missing", "找不到程序"},
	RunBadVerdict: {"its answer was not readable", "结果无法解读"},
	RunAbandoned:  {"cut off when the core went away", "因核心停止而中断"},
	RunDetached:   {"started, and not followed further", "已启动，不再跟踪"},

	HelpTitle:     {"keys and signs", "按键与标记"},
	HelpList:      {"In the list", "列表中"},
	HelpQuestion:  {"In a question", "问题中"},
	HelpSigns:     {"Signs", "标记"},
	HelpMove:      {"choose a row; PgUp PgDn Home End go farther", "选择一行；PgUp PgDn Home End 移动更远"},
	HelpOpen:      {"open the row, or all that is ticked", "打开此行，或打开所有已勾选的行"},
	HelpTick:      {"tick a row, to answer several at once", "勾选一行，以便一次回答多个"},
	HelpTickAll:   {"tick all rows that are shown, or none", "勾选所有显示的行，或全部取消"},
	HelpQuit:      {"quit; on a page, back to the list", "退出；在其他页面则回到列表"},
	HelpNext:      {"open the next question", "打开下一个问题"},
	HelpTab:       {"go between what waits and what was decided", "在待答与先前之间切换"},
	HelpFilter:    {"filter both by what their rows say", "按各行内容筛选两部分"},
	HelpHooks:     {"what the hooks did", "查看钩子的运行"},
	HelpMouse:     {"give the mouse to the terminal, or take it back", "把鼠标交给终端，或收回"},
	HelpWhy:       {"why it asks, and all that is known", "为何询问，以及全部信息"},
	HelpLater:     {"later: back to the list, nothing is lost", "稍后：回到列表，不会丢失内容"},
	HelpScroll:    {"scroll the value; PgUp PgDn Home End go farther", "滚动内容；PgUp PgDn Home End 移动更远"},
	HelpFocus:     {"go to the next value or button; Enter presses it", "移到下一项或按钮；回车按下"},
	HelpPager:     {"read the value in a pager", "用分页程序查看内容"},
	HelpCopy:      {"copy the value as it is", "原样复制内容"},
	HelpTurn:      {"next or previous question", "下一个或上一个问题"},
	SignWaiting:   {"waiting for an answer", "等待回答"},
	SignRunning:   {"on its way or running", "送达中或运行中"},
	SignWentOn:    {"went on", "已放行"},
	SignRefused:   {"refused by a person or a rule", "被人或规则拒绝"},
	SignNoAnswer:  {"no answer, or nobody to ask", "无人回答，或无人可问"},
	SignWithdrawn: {"withdrawn", "已撤回"},
	SignNobody:    {"went on, nobody was asked", "已放行，未询问"},
}
