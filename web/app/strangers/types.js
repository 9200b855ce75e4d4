// Types of the page's state machine: its state, events and effects.

/** @typedef {'video' | 'text'} Mode */
/**
 * @typedef {{is: 'connecting'} | {is: 'online'} | {is: 'reconnecting', since: number}
 *   | {is: 'closed', code: string, message: string}} Link
 *   connecting → online ⇄ reconnecting; any → closed; closed → connecting on `retryLink`
 */
/** @typedef {'refused' | 'missing' | 'busy' | 'insecure' | 'lost' | 'unknown'} MediaTrouble */
/**
 * @typedef {{is: 'off'} | {is: 'asking'} | {is: 'on', camera: boolean} | {is: 'failed', why: MediaTrouble}} Media
 *   off → asking → on | failed; failed → asking; on → failed; any → off
 */
/** @typedef {'next' | 'blocked' | 'partnerNext' | 'partnerLeft' | 'connectionLost'} Ending */
/** @typedef {{matchId: string, name: string, endedAt: number}} PastMatch */
/** @typedef {{until: number, seconds: number}} Pause until: when it ends; seconds: its length, as shown to the user */
/** @typedef {{is: 'waiting', pause: Pause | null, after: Ending | null, name: string}} Waiting */
/**
 * @typedef {{is: 'matched', matchId: string, mode: Mode, name: string, interests: string[], textChat: boolean,
 *   away: boolean, typing: boolean, silent: boolean, blurred: {own: boolean, partner: boolean},
 *   stream: 'none' | 'pending' | 'live' | 'stalled' | 'missing'}} Matched
 *   silent: the browser blocks the sound until the user clicks
 */
/**
 * @typedef {{is: 'idle'} | {is: 'preparing'} | Waiting | Matched} Chat
 *   idle → preparing → waiting ⇄ matched; any → idle. `preparing`: after Start, until the camera and the connection are ready
 */
/**
 * @typedef {{id: number, who: 'me' | 'partner' | 'note', text: string, sent: 'yes' | 'pending' | 'failed'}} Line
 *   a `note` shows how the match ended; its text is an Ending
 */
/**
 * @typedef {{name: string, interests: string[], mode: Mode, agreed: boolean, agreedToSamples?: boolean}} Form
 *   agreedToSamples: the rules that the user agreed to mentioned samples of the camera
 */
/** @typedef {{source: 'check' | 'operator', ends: boolean, text: string}} Warning a warning to this user; the text may be empty */
/** @typedef {{is: 'block' | 'report', matchId: string, name: string}} Question */
/** @typedef {{code: string, message: string, pause: Pause | null}} Trouble */
/**
 * @typedef {object} State
 * @property {Link} link
 * @property {boolean | null} hidesAddress whether the partner cannot see the user's IP address; null until the server
 *   has sent it
 * @property {number | null} samplesEvery the seconds between two samples of the camera in a video chat; null if the server checks none
 * @property {Media} media
 * @property {boolean} muted
 * @property {boolean} cameraOff
 * @property {Form} form
 * @property {Chat} chat
 * @property {PastMatch | null} last the previous match, while it can be reported
 * @property {Line[]} lines
 * @property {string | null} linesOf the id of the match that the lines belong to
 * @property {number} lineCount the number of lines since the page was loaded
 * @property {import('../shared/keep.js').ContactOffer[]} keeping the offers to keep in touch, one for each match
 * @property {Question | null} question
 * @property {'sending' | 'failed' | null} reporting
 * @property {Warning | null} warning the latest warning, until the user dismisses it
 * @property {Trouble | null} trouble why the last request failed
 * @property {'back' | 'reported' | 'away' | null} passing a message for the status line. `back` and `reported` are
 *   shown for a few seconds; `away`, after a search that stopped because of a long absence, stays until the next
 *   search
 * @property {{online: number, waiting: number} | null} people
 * @property {boolean} guest
 */
/** @typedef {{type: string, [member: string]: any}} Event */
/** @typedef {{do: string, [member: string]: any}} Effect */
/** @typedef {[State, Effect[]]} Step */

export {};
