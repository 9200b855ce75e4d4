// Types of the state machine of the page `/room/<name>`.

/** @typedef {import('../../lib/signaling/room-messages.js').RoomRole} Role */
/** @typedef {import('../../lib/signaling/room-messages.js').RoomOptions} Options */
/** @typedef {import('../../lib/signaling/room-messages.js').RoomPerson} Person */
/** @typedef {import('../../lib/signaling/room-messages.js').RoomLine} Line */
/**
 * @typedef {{is: 'connecting'} | {is: 'online'} | {is: 'reconnecting'} | {is: 'closed', code: string, message: string}} Link
 *   connecting → online ⇄ reconnecting; any → closed; closed → connecting on `retryLink`; online → connecting when the
 *   user joins with changed network settings
 */
/** @typedef {import('../shared/media-trouble.js').MediaTrouble} MediaTrouble */
/**
 * @typedef {{is: 'off'} | {is: 'asking'} | {is: 'on', camera: boolean, lost?: 'audio' | 'video'} | {is: 'failed', why: MediaTrouble}} Media
 *   off → asking → on | failed; on | failed → asking; on → failed. `lost`: the device that was disconnected; the other
 *   one still works
 */
/**
 * @typedef {{is: 'before'} | {is: 'joining', sent: boolean} | {is: 'waiting'} | {is: 'in'} | {is: 'over', why: string, message: string}} Place
 *   before → joining → waiting | in; waiting ⇄ in; joining | waiting → before after canceling or an error that the
 *   user can correct; joining | waiting | in → over; over → before | joining. `sent`: whether the join request was
 *   sent; until then the page waits for the camera or the connection. `why`: a reason of the room, an error code,
 *   `left`, `connectionLost`, or `unreadable` for a link without a room name
 */
/**
 * @typedef {object} Room
 * @property {string} name
 * @property {string} me the local connectionId
 * @property {Role} role
 * @property {Options} options
 * @property {Person[]} people everyone, in the order of joining
 * @property {boolean} away whether the room is being rejoined
 * @property {number} maxFileSize 0 if files are disabled on the server
 * @property {boolean} hostsMayRecord whether the server lets hosts record this room
 */
/**
 * @typedef {{streamId: string, connectionId: string, isScreen: boolean, hasAudio: boolean, hasVideo: boolean, aspect: number | null,
 *   isLive: boolean, isSilent: boolean}} Stream
 *   a stream of another person. isLive: whether its media arrives; isSilent: whether the browser blocks its sound
 *   until the user clicks
 */
/** @typedef {{id: number, connectionId: string, name: string, text: string, at: number, mine: boolean, file?: {fileId: string, size: number}}} ChatLine */
/** @typedef {{connectionId: string, displayName: string}} Knock */
/** @typedef {{id: number, connectionId: string, reaction: string}} Reaction shown on a tile for a few seconds */
/** @typedef {'auto' | 'grid' | 'speaker'} LayoutChoice */
/** @typedef {'topLeft' | 'topRight' | 'bottomLeft' | 'bottomRight'} Corner */
/** @typedef {'chat' | 'people'} Panel */
/** @typedef {'invite' | 'options' | 'settings' | 'keys'} Dialog */
/** @typedef {'react' | 'layout' | 'more'} Popup */
/** @typedef {{is: 'remove', connectionId: string, name: string} | {is: 'host', connectionId: string, name: string}} Question */
/**
 * @typedef {{code: string, message: string, until?: number, seconds?: number}} Trouble until: when the user may try
 *   again; seconds: the length of that wait, shown in the text
 */
/**
 * @typedef {{of: string, connectionId?: string, isScreen?: boolean, code: string, isFinal: boolean}} Fault media that cannot be sent or
 *   received. of: `camera` (the user's camera and microphone), `video` (only the user's camera), `screen` (the user's
 *   screen), or the streamId of a stream that cannot be received. For a streamId, connectionId is the sender, and
 *   isScreen whether it is the sender's screen. It is retried unless `isFinal`
 */
/**
 * @typedef {{connectionId: string, isReady: boolean}} KnockCard connectionId: the person on the card. isReady: whether
 *   the card accepts presses. At first it does not, so that a press that was meant for another person does nothing
 */
/** @typedef {{is: string, name?: string}} Passing is: the key of a status message; name: the person in that message */
/**
 * @typedef {object} Settings of this device's media, applied at the next join
 * @property {'any' | 'local' | 'stun' | 'turn'} candidates which ICE candidates to use
 * @property {'any' | 'udp' | 'tcp'} protocol
 * @property {string} size the camera resolution, such as `640x480`
 * @property {number} rate frames per second
 * @property {'any' | 'vp8' | 'h264'} videoCodec the codec to send, if the others support it
 * @property {'any' | 'opus' | 'g722'} audioCodec the codec to send in mesh rooms; routed rooms use only Opus
 */
/**
 * @typedef {object} Remembered
 * @property {string} name
 * @property {LayoutChoice} layout
 * @property {Corner} corner
 * @property {boolean} keys whether single-key shortcuts are on
 * @property {Settings} settings
 */
/**
 * @typedef {object} State
 * @property {Link} link
 * @property {boolean} guest
 * @property {string} address the room's name in the address
 * @property {boolean} mesh whether this is known to be a mesh room, where members see each other's IP addresses
 * @property {boolean} hasToken whether an application sent the user here with a token
 * @property {boolean} isNamed whether the token sets the user's name
 * @property {boolean} isFramed whether the page is embedded in another page
 * @property {Remembered} kept
 * @property {Settings} used the settings with which the connection and the camera were opened
 * @property {string} password the password typed by the user
 * @property {boolean} asksPassword
 * @property {Media} media
 * @property {boolean} muted
 * @property {boolean} cameraOff
 * @property {'unknown' | 'heard' | 'silent'} sound whether the microphone picked up sound recently
 * @property {Place} place
 * @property {Room | null} room
 * @property {Stream[]} streams
 * @property {string | null} speaker the connectionId of the active speaker
 * @property {string | null} pinned the id of the pinned tile
 * @property {Record<string, 'contain' | 'cover'>} fits the fits that the user chose, keyed by tile id
 * @property {number} page the current page of tiles
 * @property {ChatLine[]} lines
 * @property {number} lineCount the number of lines since the page was loaded
 * @property {number} unread
 * @property {Knock[]} knocks
 * @property {KnockCard | null} card
 * @property {number} knockedAt when the knock sound was last played
 * @property {Reaction[]} reactions
 * @property {number} reactionCount
 * @property {{name: string, reaction: string, at: number} | null} reported the last reaction announced to screen readers
 * @property {'off' | 'asking' | 'on'} sharing
 * @property {Panel | null} panel
 * @property {Dialog | null} dialog
 * @property {Popup | null} popup
 * @property {Question | null} question
 * @property {Trouble | null} trouble
 * @property {Fault[]} faults
 * @property {boolean} faultsRead whether the user has dismissed the notice about the faults
 * @property {{asks: boolean} | null} recording whether the room is being recorded, and whether the user must still accept or refuse
 * @property {{asks: boolean} | null} broadcast whether the room is being broadcast live, and whether the user must still accept or refuse
 * @property {boolean} recordingAsked whether the server has not yet answered the request to start or stop recording
 * @property {Passing | null} passing a confirmation, shown for a few seconds
 */
/** @typedef {{type: string, [member: string]: any}} Event */
/** @typedef {{do: string, [member: string]: any}} Effect */
/** @typedef {[State, Effect[]]} Step */
/** @typedef {Record<string, (state: State, event: Event, now: number) => Step>} Handlers */

export {};
