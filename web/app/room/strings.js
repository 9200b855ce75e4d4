// The texts of the page `/room/<name>`, in addition to the shared ones. To translate: copy `en`, translate the values, and add
// the copy to `catalogs`.
import { stringsFor } from '../shared/strings.js';

/**
 * Isolates a name inside a sentence, because right-to-left text would change the order of the sentence.
 * @param {string} name
 */
const isolated = (name) => `\u2068${name}\u2069`;
const plural = new Intl.PluralRules('en');
/** @param {number} count @param {string} one @param {string} other */
const counted = (count, one, other) => `${count.toLocaleString('en')} ${plural.select(count) === 'one' ? one : other}`;

const en = {
  title: /** @param {string} room */ (room) => (room ? `${room} – Confab` : 'Confab – room'),
  titleWaiting: /** @param {number} count @param {string} room */ (count, room) => `(${count}) ${room} – Confab`,
  headline: /** @param {string} room */ (room) => `Join ${isolated(room)}`,
  pitch: 'Check your camera and microphone. Others see and hear you after you press Join.',
  meshNote: 'In this room, members see each other’s IP addresses, because audio and video travel directly between them.',
  tokenNote: 'The site that you come from has chosen your name.',

  // Before the room
  yourName: 'Your name',
  yourNameHint: 'Shown to others. If you leave it empty, we pick one for you.',
  password: 'Password',
  passwordHint: 'This room has a password. Ask the person who invited you.',
  join: 'Join',
  joining: 'Joining…',
  cancel: 'Cancel',
  waitingTitle: 'Waiting to be let in',
  waitingText: 'A host can see that you are here. This page continues by itself when they let you in.',
  otherRooms: 'Other rooms',
  joinAgain: 'Join again',
  joinWithout: 'You can still join. You will see and hear everyone, and can write in the chat.',
  unheard: 'No sound from your microphone yet. Say something. If the bar does not move, choose another microphone.',
  mutedHint: 'Your microphone is muted.',
  previewOff: 'Your browser will ask to use your camera and microphone.',
  previewCameraOff: 'Your camera is off. Others can still hear you.',
  lostMicrophone: 'Your microphone was disconnected. Connect it again, or choose another one.',
  lostCamera: 'Your camera was disconnected. Choose another one in the settings, or connect it again and press “Camera off” to turn it on.',
  media: {
    refused: 'The camera and microphone are blocked for this page. Allow them in the address bar and try again.',
    missing: 'No camera or microphone was found. Connect one and try again.',
    busy: 'Another program is using the camera or microphone. Close it and try again.',
    insecure: 'Your browser allows the camera and microphone only over HTTPS. Open this page with https://.',
    lost: 'The camera and microphone were disconnected. Connect them again and try again.',
    unknown: 'The camera and microphone could not be started. Try again.',
  },

  // In the room
  stage: 'People in this room',
  controls: 'Controls',
  shareScreen: 'Share screen',
  raiseHand: 'Raise hand',
  react: 'React',
  reactWith: /** @param {string} name */ (name) => `React with ${name}`,
  reactions: [['👍', 'thumbs up'], ['👏', 'applause'], ['❤️', 'a heart'], ['😂', 'laughter'], ['😮', 'surprise'], ['🎉', 'celebration']],
  reactedWith: /** @param {string} name @param {string} what */ (name, what) => `${isolated(name)} reacted with ${what}.`,
  chat: 'Chat',
  people: 'People',
  layout: 'Layout',
  layouts: { auto: 'Automatic', grid: 'Grid', speaker: 'Speaker' },
  invite: 'Invite',
  more: 'More',
  leave: 'Leave',
  close: 'Close',
  selfHint: 'Press Enter, or click your picture, to mute or unmute. Use the arrow keys, or drag it, to move it to another corner, or to the other end of the strip.',
  tileOf: /** @param {string} name */ (name) => `Screen of ${name}`,
  pin: /** @param {string} name */ (name) => `Pin ${name}`,
  fill: /** @param {string} name */ (name) => `Fill the tile with ${name}`,
  isMuted: 'Muted',
  isHost: 'Host',
  isAway: 'Reconnecting…',
  isUnseen: 'Not shown yet',
  handUp: 'Raised hand',
  previousPage: 'Previous page',
  nextPage: 'Next page',
  pages: /** @param {number} page @param {number} pages */ (page, pages) => `Page ${page} of ${pages}`,
  unreadCount: /** @param {number} count */ (count) => counted(count, 'unread message', 'unread messages'),
  waitingCount: /** @param {number} count */ (count) => counted(count, 'person is waiting', 'people are waiting'),
  alone: 'You are the only one here',
  aloneText: 'Send this link to the people you want to meet.',
  pip: 'Picture in Picture',

  // Chat
  messages: 'Messages',
  messagePlaceholder: 'Write to everyone…',
  chatEmpty: 'Messages are for everyone in this room. People who join later see the last ones.',
  chatOff: 'A host has turned off the chat.',
  attach: 'Attach a file',
  cancelFile: 'Cancel the file',
  sending: /** @param {string} name */ (name) => `Sending ${isolated(name)}…`,
  fileCanceled: 'The file was not sent.',
  oneFile: 'Only one file can be sent at a time. Send the next one when the first has arrived.',
  saveFile: /** @param {string} name @param {string} size */ (name, size) => `Save ${isolated(name)} (${size})`,
  removeFile: 'Remove',
  removeFileNamed: /** @param {string} name */ (name) => `Remove the file ${isolated(name)}`,
  fileTooLarge: /** @param {string} name @param {string} most */ (name, most) => `${isolated(name)} is too large. A file can have at most ${most}. Send a smaller one, or a link.`,
  bytes: /** @param {number} count */ (count) => (count < 1e6 ? `${Math.ceil(count / 1e3)} kB` : `${(count / 1e6).toFixed(1)} MB`),
  sentBy: /** @param {string} name */ (name) => `${isolated(name)}:`,

  // People
  you: /** @param {string} name */ (name) => `${name} (you)`,
  waitingHere: 'Waiting to be let in',
  inRoom: 'In the room',
  knocks: /** @param {string} name */ (name) => `${isolated(name)} would like to come in.`,
  knocksMore: /** @param {number} count */ (count) => `${counted(count, 'other person is', 'other people are')} waiting too.`,
  admit: 'Admit',
  deny: 'Deny',
  roles: { host: 'Host', cohost: 'Cohost', guest: '' },
  optionsFor: /** @param {string} name */ (name) => `Options for ${name}`,
  muteOther: 'Mute this person',
  stopShare: 'Stop their screen share',
  muteAll: 'Mute everyone',
  remove: 'Remove',
  makeHost: 'Make host',
  makeCohost: 'Make cohost',
  makeGuest: 'Make guest',
  removeTitle: /** @param {string} name */ (name) => `Remove ${isolated(name)} from the room?`,
  ban: 'Also ban them, so that they cannot come back to this room',
  hostTitle: /** @param {string} name */ (name) => `Make ${isolated(name)} a host? You cannot undo this: a host can change everyone’s role, also yours.`,

  // Invite
  inviteTitle: 'Invite people',
  link: 'Link to this room',
  copy: 'Copy link',
  share: 'Share…',
  qr: 'QR code of the link',
  qrLater: 'The QR code will appear in a moment.',
  invitePassword: 'This room has a password. Tell it to the people you invite.',
  inviteLocked: 'This room is locked. Unlock it before others can join.',
  inviteText: /** @param {string} room */ (room) => `Join me in ${room} on Confab.`,

  // Room settings, for hosts
  optionsTitle: 'Room settings',
  locked: 'Lock the room',
  lockedHint: 'Nobody else can join.',
  lobby: 'Lobby',
  lobbyHint: 'People wait until a host lets them in.',
  chatOption: 'Chat',
  shareHosts: 'Only hosts may share their screen',
  persistent: 'Keep the room when it is empty',
  persistentHint: 'Otherwise it ends soon after the last person has left, and when the server restarts.',
  capacity: 'Capacity',
  capacityHint: /** @param {number} most */ (most) => `How many people may be here, 1 to ${most}`,
  newPassword: 'Room password',
  hasPassword: 'This room has a password.',
  noPassword: 'This room has no password.',
  setPassword: 'Set password',
  removePassword: 'Remove password',

  // Settings of this device
  settingsTitle: 'Settings',
  settingsHint: 'The settings below stay on this device and apply the next time you join.',
  speakers: 'Speakers',
  systemSpeakers: 'System default',
  unnamedSpeakers: /** @param {number} number */ (number) => `Speakers ${number}`,
  candidates: 'Connect by',
  candidateNames: {
    any: 'Any way', local: 'Direct connections only', stun: 'Direct connections and STUN', turn: 'TURN servers only',
  },
  protocol: 'Protocol',
  protocolNames: { any: 'UDP or TCP', udp: 'UDP', tcp: 'TCP' },
  size: 'Camera size',
  rate: 'Frames per second',
  videoCodec: 'Video codec',
  videoCodecNames: { any: 'Any', vp8: 'VP8', h264: 'H.264' },
  codecMissing: /** @param {string} codec */ (codec) => `${codec} – not in this browser`,
  codecReplaced: 'This browser does not have the codec that you chose. It sends another one.',
  audioCodec: 'Audio codec',
  audioCodecNames: { any: 'Any', opus: 'Opus', g722: 'G.722 (mesh rooms only)' },

  // Shortcuts
  keysTitle: 'Keyboard shortcuts',
  keysOn: 'Use these keys',
  keysHint: 'They do not work while you type.',
  keyNames: {
    m: 'Mute or unmute', v: 'Camera on or off', s: 'Share your screen', h: 'Raise or lower your hand', c: 'Chat', p: 'People', l: 'Next layout',
    i: 'Invite', f: 'Full screen', '?': 'This list', Escape: 'Close what is open',
  },
  escape: 'Esc',

  // The status line
  status: {
    connecting: 'Connecting…',
    ready: 'Ready to join.',
    allow: 'Allow camera and microphone access.',
    joining: 'Joining…',
    waiting: 'Waiting for a host to let you in…',
    dropped: 'Connection lost. Reconnecting…',
    closed: 'Not connected.',
    over: 'You are not in the room.',
    alone: 'You are the only one here.',
    here: /** @param {number} others */ (others) => `You and ${counted(others, 'other person', 'other people')}`,
    sharing: 'You are sharing your screen.',
    handUp: 'Your hand is raised.',
    came: /** @param {string} name */ (name) => `${isolated(name)} joined.`,
    went: /** @param {string} name */ (name) => `${isolated(name)} left.`,
    hand: /** @param {string} name */ (name) => `${isolated(name)} raised a hand.`,
    away: /** @param {string} name */ (name) => `${isolated(name)} lost the connection and may come back.`,
    backOther: /** @param {string} name */ (name) => `${isolated(name)} is connected again.`,
    wrote: /** @param {string} name */ (name) => `New message from ${isolated(name)}.`,
    backAgain: 'You are connected again.',
    mutedByHost: 'A host muted you. You can unmute yourself.',
    shareStopped: 'A host stopped your screen share.',
    hostNow: 'You are a host of this room now.',
    cohostNow: 'You are a cohost of this room now.',
    guestNow: 'You are a guest of this room now.',
    lockedOn: 'The room is locked now.',
    lockedOff: 'The room is open again.',
    lobbyOn: 'New people wait in the lobby now.',
    lobbyOff: 'New people can come in at once now.',
    chatOn: 'A host turned on the chat.',
    chatOff: 'A host turned off the chat.',
    copied: 'Link copied.',
  },

  // What cannot be sent or received, and what to do
  faults: {
    camera: 'Others do not see or hear you yet. This page keeps trying. If that takes long, leave the room and join again.',
    cameraFull: 'Others do not see or hear you yet, because the server has reached its bandwidth limit. This page keeps trying. To be heard, turn your camera off.',
    video: 'Others do not see you yet. This page keeps trying.',
    videoFull: 'Others do not see you yet, because the server has reached its bandwidth limit. This page keeps trying.',
    screen: 'Others do not see your screen yet. This page keeps trying. If that takes long, stop sharing and share again.',
    screenFull: 'Others do not see your screen yet, because the server has reached its bandwidth limit. This page keeps trying.',
    others: /** @param {string} name */ (name) => `You do not see or hear ${name ? isolated(name) : 'everyone'} yet. This page keeps trying. If that takes long, leave the room and join again.`,
    othersFull: /** @param {string} name */ (name) =>
      `You do not see or hear ${name ? isolated(name) : 'everyone'} yet, because the server has reached its bandwidth limit. This page keeps trying. It helps if people turn their cameras off.`,
    othersFinal: /** @param {string} name */ (name) => `You do not see or hear ${name ? isolated(name) : 'everyone'}. Leave the room and join again.`,
    screens: /** @param {string} name */ (name) => `You do not see ${name ? `the screen of ${isolated(name)}` : 'every shared screen'} yet. This page keeps trying. If that takes long, leave the room and join again.`,
    screensFull: /** @param {string} name */ (name) =>
      `You do not see ${name ? `the screen of ${isolated(name)}` : 'every shared screen'} yet, because the server has reached its bandwidth limit. This page keeps trying. It helps if people turn their cameras off.`,
    screensFinal: /** @param {string} name */ (name) => `You do not see ${name ? `the screen of ${isolated(name)}` : 'every shared screen'}. Leave the room and join again.`,
  },

  // How a visit ends, each with what to do next
  over: {
    left: ['You left the room', 'You can come back at any time.'],
    removed: ['A host removed you from the room', 'You can try to join again.'],
    banned: ['A host banned you from this room', 'You cannot come back to it. You can open another room.'],
    closed: ['This room was closed', 'An operator of this site ended it. You can open another room.'],
    replaced: ['You joined this room on another device', 'To continue here, join again.'],
    room_full: ['This room is full', 'Try again when somebody has left, or ask a host for more places.'],
    room_locked: ['This room is locked', 'Ask a host to unlock it, then try again.'],
    room_mesh: ['This room has changed', 'Its members now see each other’s IP addresses. Join again only if you accept that.'],
    room_other: ['Your room has ended', 'Another room has its name now, and other people may be in it. Join it only if you expect that.'],
    room_refused: ['A host did not let you in', 'You can knock again in a minute.'],
    room_banned: ['You are banned from this room', 'You can open another room.'],
    room_not_found: ['There is no such room', 'Check the link. On this site, only operators create rooms.'],
    media_unavailable: ['This server cannot carry audio and video now', 'Try again later.'],
    not_permitted: ['You are not allowed to join this room', 'Ask for a new invitation.'],
    roomEnded: ['This room has ended', 'Ask the site that you come from for a new invitation.'],
    invitation: ['You cannot join with this invitation', 'This invitation no longer works. Ask for a new one.'],
    connectionLost: ['The connection to the room was lost', 'Check your network, then join again.'],
    unreadable: ['This link cannot be read', 'A part of it is missing or damaged. Ask for it again, or open another room.'],
    unknown: ['You are no longer in the room', 'Try to join again.'],
  },

  // Problems
  troubles: {
    room_mesh: 'In this room, members see each other’s IP addresses. Press Join again if you accept that.',
    room_no_password: 'This room has no password, so it may be another room than you expect. Everyone who knows its name can join. Press Join to join it anyway.',
    wrong_password: 'This is not the password. Try again.',
    rate_limited: 'Too many requests. Wait a moment, then try again.',
    already_joined: 'You are already waiting for this room in another tab. Continue there, or leave it there first.',
    invalid_name: 'This name cannot be used. Choose another one.',
    share_hosts: 'Only hosts may share their screen in this room.',
    share_failed: 'The screen could not be shared. Try again.',
    not_sent: 'Nobody sees or hears you any more. To send your camera and microphone again, leave the room and join again.',
    share_unsupported: 'This browser cannot share a screen. Use one on a computer.',
    copy_failed: 'The link could not be copied. Select it and copy it yourself.',
    room_full: 'The room is full. Raise its capacity first.',
    not_permitted: 'Only the owner of this room, or a host they chose, can do this.',
    not_found: 'This person is no longer here.',
    offline_queue_full: 'The connection is lost. Try again after it is restored.',
    camera_failed: 'The camera could not be started. Check whether another program uses it, then try again.',
    microphone_failed: 'The microphone could not be started. Check whether another program uses it, then try again.',
    token_expired: 'This invitation has expired. Ask for a new one.',
    token_match_ended: 'This invitation is no longer valid. Ask for a new one.',
    token_revoked: 'This invitation was revoked when a host removed you. Ask for a new one.',
    token_room: 'This invitation is for another room. Check the link, or ask for a new one.',
    token_malformed: 'This invitation is not valid. Check the link, or ask for a new one.',
    token_signature: 'This invitation is not valid. Check the link, or ask for a new one.',
  },
};

/** @typedef {import('../shared/strings.js').Strings & {room: typeof en}} Strings */

/** @type {Record<string, typeof en>} */
const catalogs = { en };

/** @param {readonly string[]} languages @returns {{language: string, strings: Strings}} */
export function roomStringsFor(languages) {
  const { language, strings } = stringsFor(languages.filter((tag) => tag.split('-')[0].toLowerCase() in catalogs));
  return { language, strings: { ...strings, room: catalogs[language] } };
}
