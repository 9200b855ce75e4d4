// Types of the state machine of the page `/room/<name>`.

/** @typedef {import('../../lib/line/room-messages.js').RoomRole} Role */
/** @typedef {import('../../lib/line/room-messages.js').RoomOptions} Options */
/** @typedef {import('../../lib/line/room-messages.js').RoomPerson} Person */
/** @typedef {import('../../lib/line/room-messages.js').RoomLine} Line */
/**
 * @typedef {{is: 'connecting'} | {is: 'online'} | {is: 'reconnecting'} | {is: 'closed', code: string, message: string}} Link
 *   connecting → online ⇄ reconnecting; any → closed, left only by reloading the page or by `retryLink`
 */
/** @typedef {import('../shared/media-trouble.js').MediaTrouble} MediaTrouble */
/**
 * @typedef {{is: 'off'} | {is: 'asking'} | {is: 'on', camera: boolean, lost?: 'audio' | 'video'} | {is: 'failed', why: MediaTrouble}} Media
 *   off → asking → on | failed; failed → asking. `lost`: this device was disconnected, the other one still works
 */
/**
 * @typedef {{is: 'before'} | {is: 'joining', sent: boolean} | {is: 'waiting'} | {is: 'in'} | {is: 'over', why: string, message: string}} Place
 *   before → joining → waiting | in; waiting → in; any → over; over → joining. `sent`: the server was asked; until then the page
 *   waits for the camera or the connection. `why`: a reason of the room, an error code, `left` or `connectionLost`
 */
/**
 * @typedef {object} Room
 * @property {string} name
 * @property {string} me our own connectionId
 * @property {Role} role
 * @property {Options} options
 * @property {Person[]} people everyone, in the order of joining
 * @property {boolean} away our place is being restored
 * @property {number} maxFileSize 0: the server takes no files
 */
/**
 * @typedef {{streamId: string, connectionId: string, isScreen: boolean, hasAudio: boolean, hasVideo: boolean, aspect: number | null,
 *   isLive: boolean, isSilent: boolean}} Stream
 *   a stream of another person. isLive: media arrives; isSilent: the browser blocks its sound until the user clicks
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
/** @typedef {{code: string, message: string, until?: number, seconds?: number}} Trouble */
/**
 * @typedef {{of: string, connectionId?: string, isScreen?: boolean, code: string, isFinal: boolean}} Fault what cannot be sent (`camera`,
 *   `screen`) or received (a streamId). It is tried again unless that is final. connectionId: who sends the stream; isScreen: whether it
 *   is their screen
 */
/**
 * @typedef {{connectionId: string, isReady: boolean}} KnockCard who is on the card. Not ready for a moment, so that a press that was
 *   meant for somebody else does nothing
 */
/** @typedef {{is: string, name?: string}} Passing a key of the status texts, and the person it is about */
/**
 * @typedef {object} Settings of the media on this device, applied at the next join
 * @property {'any' | 'local' | 'stun' | 'turn'} candidates which ICE candidates to use
 * @property {'any' | 'udp' | 'tcp'} protocol
 * @property {string} size of the camera's video, such as `640x480`
 * @property {number} rate frames per second
 * @property {'any' | 'vp8' | 'h264'} videoCodec to send, if the others have it
 * @property {'any' | 'opus' | 'g722'} audioCodec to send in mesh rooms; routed rooms have only Opus
 */
/**
 * @typedef {object} Remembered
 * @property {string} name
 * @property {LayoutChoice} layout
 * @property {Corner} corner
 * @property {boolean} keys whether single keys are shortcuts
 * @property {Settings} settings
 */
/**
 * @typedef {object} State
 * @property {Link} link
 * @property {boolean} guest
 * @property {string} address the room's name in the address
 * @property {boolean} mesh whether members see each other's addresses, as far as is known
 * @property {boolean} hasToken whether an application sent the user here with a token
 * @property {boolean} isNamed whether the token names the user
 * @property {boolean} isFramed whether another page shows this one
 * @property {Remembered} kept
 * @property {Settings} used the settings of the connection and the camera in use
 * @property {string} password what the user typed
 * @property {boolean} asksPassword
 * @property {Media} media
 * @property {boolean} muted
 * @property {boolean} cameraOff
 * @property {'unknown' | 'heard' | 'silent'} sound whether the microphone has heard anything lately
 * @property {Place} place
 * @property {Room | null} room
 * @property {Stream[]} streams
 * @property {string | null} speaker the connectionId of the active speaker
 * @property {string | null} pinned a tile
 * @property {Record<string, 'contain' | 'cover'>} fits tiles whose fit the user has chosen
 * @property {number} page of the tiles
 * @property {ChatLine[]} lines
 * @property {number} lineCount the number of lines since the page was loaded
 * @property {number} unread
 * @property {Knock[]} knocks
 * @property {KnockCard | null} card
 * @property {number} knockedAt when a knock was last heard
 * @property {Reaction[]} reactions
 * @property {number} reactionCount
 * @property {{name: string, reaction: string, at: number} | null} told the last reaction that was announced
 * @property {'off' | 'asking' | 'on'} sharing
 * @property {Panel | null} panel
 * @property {Dialog | null} dialog
 * @property {Popup | null} popup
 * @property {Question | null} question
 * @property {Trouble | null} trouble
 * @property {Fault[]} faults
 * @property {boolean} faultsRead whether the user has closed the sentence about them
 * @property {Passing | null} passing a confirmation, shown for a few seconds
 */
/** @typedef {{type: string, [member: string]: any}} Event */
/** @typedef {{do: string, [member: string]: any}} Effect */
/** @typedef {[State, Effect[]]} Step */
/** @typedef {Record<string, (state: State, event: Event, now: number) => Step>} Handlers */

export {};
