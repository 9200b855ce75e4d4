// Types of the state machine of the page `/nearby`.

/** @typedef {{personId: string, name: string, online: boolean}} Person */
/**
 * @typedef {{personId: string, name: string, distance: number, busy: boolean}} Row a person in the list; `distance`:
 *   the upper edge of the person's distance bucket, in the list's unit
 */
/** @typedef {'mi' | 'km'} Unit */
/** @typedef {'everyone' | 'contacts' | 'nobody'} Ringable */
/**
 * @typedef {{personId: string, name: string, visible: boolean, doNotDisturb: boolean, ringable: Ringable, hasPosition: boolean}} Me
 */
/**
 * @typedef {{is: 'connecting'} | {is: 'online'} | {is: 'reconnecting'} | {is: 'closed', code: string, message: string}} Link
 *   connecting → online ⇄ reconnecting; any → closed; closed → connecting on `retryLink` or when the user goes online
 */
/**
 * @typedef {'off' | 'asking' | 'on' | 'refused' | 'unavailable' | 'insecure'} Position
 *   off → asking → on | refused | unavailable | insecure; refused | unavailable | insecure → asking; on → refused |
 *   unavailable; any → off
 */
/**
 * @typedef {{is: 'off' | 'loading' | 'here', people: Row[], next: string | null, pages: (string | null)[]}} Listing
 *   next: where the next page starts, or null if there is none; pages: where each page starts, up to the current one,
 *   which is the last entry. The first entry is null: the first page starts at the beginning
 */
/** @typedef {'placing' | 'ringing' | 'incoming' | 'joining' | 'active' | 'ended'} CallState */
/** @typedef {'outgoing' | 'incoming'} Direction */
/**
 * @typedef {object} Call a call of the SDK; `line` is its number on this page, which stays the same when calls are merged
 * @property {number} line
 * @property {string} id
 * @property {Person} person
 * @property {Direction} direction
 * @property {boolean} video whether it was placed as a video call
 * @property {boolean} withVideo whether the other person is sending video now
 * @property {boolean} waiting whether it rings during another call
 * @property {CallState} state
 * @property {number | null} devices the number of devices on which the call rings; null until it is known
 * @property {boolean} away whether the other person lost the connection and may return
 */
/**
 * @typedef {Call & {activeAt: number | null, silent: boolean}} Line
 *   activeAt: when the call became active, in milliseconds by this page's clock, or null; silent: the browser blocks
 *   the sound until the user clicks
 */
/**
 * @typedef {'hungUp' | 'ended' | 'declined' | 'cancelled' | 'missed' | 'unanswered' | 'busy' | 'unreachable' | 'failed'
 *   | 'connectionLost' | 'answeredElsewhere' | 'declinedElsewhere' | 'merged'} Outcome
 */
/**
 * @typedef {{callId: string, person: Person, direction: Direction, outcome: Outcome, video: boolean, durationMs: number | null}} Over
 */
/**
 * @typedef {{is: 'dial', person: Person, video: boolean, sent: boolean} | {is: 'answer', line: number, video: boolean}} Command
 *   an action that waits for the camera and microphone. Once a `dial` has been `sent`, it waits until the call exists
 */
/** @typedef {'refused' | 'missing' | 'busy' | 'insecure' | 'lost' | 'unheard' | 'unknown'} MediaTrouble */
/** @typedef {{is: 'off'} | {is: 'asking', toggle?: boolean} | {is: 'on', camera: boolean} | {is: 'failed', why: MediaTrouble}} Media `toggle`: the camera was requested during the current call */
/**
 * @typedef {{callId: string, direction: Direction, outcome: Outcome, person: Person, video: boolean, at: number,
 *   durationMs?: number, seen: boolean}} Logged
 */
/** @typedef {{deviceId: string, label: string, current: boolean, present: boolean, linkedAt?: number}} Device */
/** @typedef {'people' | 'contacts' | 'log' | 'settings'} Panel */
/**
 * @typedef {{is: 'none'} | {is: 'searching'} | {is: 'bad'} | {is: 'self'} | {is: 'nobody'} | {is: 'found', person: Person}} Found
 */
/**
 * @typedef {{is: 'delete'} | {is: 'link', code: string} | {is: 'unlink', device: Device} | {is: 'block', person: Person}
 *   | {is: 'forgetLog'}} Question
 */
/**
 * @typedef {'unavailable' | 'off' | 'busy' | 'on' | 'onPage' | 'refused'} Push `onPage`: notifications appear only
 *   while the page is open
 */
/**
 * @typedef {{code: string, message: string, person: Person | null, why?: MediaTrouble}} Trouble `person`: the person
 *   whom the user was calling, or null
 */
/** @typedef {{name: string, agreed: boolean}} Form */
/**
 * @typedef {{find: string | null, link: string | null, call?: boolean}} Arrival what the address requests. find: the
 *   id of a person to find; link: a code that links this device; call: whether the user pressed a call's notification
 */
/**
 * @typedef {object} Remembered
 * @property {boolean} entered whether the previous visit ended online; if so, this visit starts online
 * @property {boolean} position whether the location may be used
 * @property {Unit} unit
 * @property {number} radius
 * @property {boolean} visible
 * @property {boolean} doNotDisturb
 * @property {Ringable} ringable
 * @property {boolean} push
 * @property {[string, string][]} blockedNames for each blocked person, the id and the name at the time of blocking
 */
/**
 * @typedef {object} State
 * @property {Link} link
 * @property {boolean} guest
 * @property {Form} form
 * @property {Remembered} kept
 * @property {boolean} entered
 * @property {boolean} saysForm whether the user went online and the form still has to be sent
 * @property {Me | null} me null until the server has sent it
 * @property {Position} position
 * @property {Listing} list
 * @property {Panel} panel
 * @property {Person[] | null} contacts
 * @property {{calls: Logged[] | null, next: string | null}} log
 * @property {number} missed the number of missed calls that the user has not seen yet
 * @property {Found} found
 * @property {Arrival} arrival what the address requests, until that is carried out
 * @property {Line[]} calls all calls that are not over
 * @property {Command | null} command
 * @property {Media} media
 * @property {boolean} muted
 * @property {boolean} cameraOff
 * @property {boolean} ringSilent whether the browser blocks the ringtone until the first user gesture
 * @property {Over | null} over
 * @property {import('../shared/keep.js').ContactOffer[]} keeping
 * @property {Device[] | null} devices
 * @property {{code: string, until: number} | null} code the code for linking another device, and when it expires
 * @property {Person[] | null} blocked
 * @property {Push} push
 * @property {Question | null} question
 * @property {Trouble | null} trouble
 * @property {string | null} passing a confirmation, shown for a few seconds: a key of `status`
 */
/** @typedef {{type: string, [member: string]: any}} Event */
/** @typedef {{do: string, [member: string]: any}} Effect */
/** @typedef {[State, Effect[]]} Step */
/** @typedef {Record<string, (state: State, event: Event, now: number) => Step>} Handlers */

export {};
