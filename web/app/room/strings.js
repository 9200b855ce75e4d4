// The text of the page `/room/<name>`, in addition to the shared text. To translate: copy `en`, translate the values,
// and add the copy to `catalogs`.
import { stringsFor } from '../shared/strings.js';

/**
 * Wraps a name for use inside a sentence, because a right-to-left name would otherwise change the order of the
 * sentence.
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
  meshNote: 'In this room, members can see each other’s IP addresses, because audio and video are sent directly between them.',
  tokenNote: 'Your name was set by the site that sent you here.',

  // Before the room
  yourName: 'Your name',
  yourNameHint: 'Shown to others. If you leave it empty, we pick one for you.',
  password: 'Password',
  passwordHint: 'This room has a password. Ask the person who invited you.',
  join: 'Join',
  joining: 'Joining…',
  cancel: 'Cancel',
  waitingTitle: 'Waiting to be let in',
  waitingText: 'Hosts can see that you are waiting. You join automatically when one of them lets you in.',
  otherRooms: 'Other rooms',
  joinAgain: 'Join again',
  joinWithout: 'You can still join. You will see and hear everyone, and can use the chat.',
  unheard: 'No sound from your microphone yet. Say something. If the level does not move, choose another microphone.',
  mutedHint: 'Your microphone is muted.',
  previewOff: 'Your browser will ask to use your camera and microphone.',
  previewCameraOff: 'Your camera is off. Others can still hear you.',
  lostMicrophone: 'Your microphone was disconnected. Reconnect it, or choose another one.',
  lostCamera: 'Your camera was disconnected. Reconnect it and turn it on again, or choose another one in Settings.',
  media: {
    refused: 'The camera and microphone are blocked for this page. Allow them in the address bar and try again.',
    missing: 'No camera or microphone was found. Connect one and try again.',
    busy: 'Another program is using the camera or microphone. Close it and try again.',
    insecure: 'Your browser allows the camera and microphone only over HTTPS. Open this page with https://.',
    lost: 'The camera and microphone were disconnected. Reconnect them and try again.',
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
  selfHint: 'Press Enter or click your video to mute or unmute. Use the arrow keys or drag the video to move it to another corner, or to the other end of the row of videos.',
  tileOf: /** @param {string} name */ (name) => `${name}’s screen`,
  pin: /** @param {string} name */ (name) => `Pin ${name}`,
  fill: /** @param {string} name */ (name) => `Crop to fill the tile: ${name}`,
  isMuted: 'Muted',
  isHost: 'Host',
  isAway: 'Reconnecting…',
  isUnseen: 'No audio or video yet',
  handUp: 'Hand raised',
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
  messagePlaceholder: 'Message everyone…',
  chatEmpty: 'Everyone in this room sees the messages. People who join later see the most recent ones.',
  chatOff: 'A host turned off the chat.',
  attach: 'Attach a file',
  cancelFile: 'Cancel upload',
  sending: /** @param {string} name */ (name) => `Sending ${isolated(name)}…`,
  fileCanceled: 'Upload canceled.',
  oneFile: 'You can send only one file at a time. Wait until the current upload has finished.',
  saveFile: /** @param {string} name @param {string} size */ (name, size) => `Save ${isolated(name)} (${size})`,
  removeFile: 'Remove',
  removeFileNamed: /** @param {string} name */ (name) => `Remove the file ${isolated(name)}`,
  fileTooLarge: /** @param {string} name @param {string} most */ (name, most) => `${isolated(name)} is too large. Files can be up to ${most}. Send a smaller file, or a link.`,
  bytes: /** @param {number} count */ (count) => (count < 1e6 ? `${Math.ceil(count / 1e3)} kB` : `${(count / 1e6).toFixed(1)} MB`),
  sentBy: /** @param {string} name */ (name) => `${isolated(name)}:`,

  // People
  you: /** @param {string} name */ (name) => `${name} (you)`,
  waitingHere: 'Waiting to be let in',
  inRoom: 'In the room',
  knocks: /** @param {string} name */ (name) => `${isolated(name)} would like to join.`,
  knocksMore: /** @param {number} count */ (count) => `${counted(count, 'other person is', 'other people are')} also waiting.`,
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
  ban: 'Also ban this person, so that they cannot join this room again',
  hostTitle: /** @param {string} name */ (name) => `Make ${isolated(name)} a host? Hosts can change everyone’s role, including yours.`,

  // Invite
  inviteTitle: 'Invite people',
  link: 'Link to this room',
  copy: 'Copy link',
  share: 'Share…',
  qr: 'QR code for the link to this room',
  qrLater: 'The QR code will appear in a moment.',
  invitePassword: 'This room has a password. Share it with the people you invite.',
  inviteLocked: 'This room is locked. Unlock it so that others can join.',
  inviteText: /** @param {string} room */ (room) => `Join me in ${room} on Confab.`,

  // Room settings, for hosts
  optionsTitle: 'Room settings',
  locked: 'Lock the room',
  lockedHint: 'No one else can join.',
  lobby: 'Use a lobby',
  lobbyHint: 'People wait until a host lets them in.',
  chatOption: 'Allow chat',
  shareHosts: 'Only hosts and cohosts can share their screen',
  persistent: 'Keep the room when it is empty',
  persistentHint: 'Otherwise, the room ends soon after the last person leaves, or when the server restarts.',
  capacity: 'Capacity',
  capacityHint: /** @param {number} most */ (most) => `Maximum number of people, 1 to ${most}`,
  newPassword: 'Room password',
  hasPassword: 'This room has a password.',
  noPassword: 'This room has no password.',
  setPassword: 'Set password',
  removePassword: 'Remove password',

  // Settings of this device
  settingsTitle: 'Settings',
  settingsHint: 'The settings below are saved on this device and apply the next time you join.',
  speakers: 'Speakers',
  systemSpeakers: 'System default',
  unnamedSpeakers: /** @param {number} number */ (number) => `Speakers ${number}`,
  candidates: 'Connection type',
  candidateNames: {
    any: 'Automatic', local: 'Direct, without STUN', stun: 'Direct, with STUN', turn: 'Relayed (TURN) only',
  },
  protocol: 'Protocol',
  protocolNames: { any: 'UDP or TCP', udp: 'UDP', tcp: 'TCP' },
  size: 'Camera resolution',
  rate: 'Frames per second',
  videoCodec: 'Video codec',
  videoCodecNames: { any: 'Any', vp8: 'VP8', h264: 'H.264' },
  codecMissing: /** @param {string} codec */ (codec) => `${codec} – not supported by this browser`,
  codecReplaced: 'This browser does not support the codec that you chose, so it uses another one.',
  audioCodec: 'Audio codec',
  audioCodecNames: { any: 'Any', opus: 'Opus', g722: 'G.722 (mesh rooms only)' },

  // Shortcuts
  keysTitle: 'Keyboard shortcuts',
  keysOn: 'Enable keyboard shortcuts',
  keysHint: 'Shortcuts do not work while you type.',
  keyNames: {
    m: 'Mute or unmute', v: 'Camera on or off', s: 'Share your screen', h: 'Raise or lower your hand', c: 'Chat', p: 'People', l: 'Next layout',
    i: 'Invite', f: 'Full screen', '?': 'Show this list', Escape: 'Close the open panel or dialog',
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
    here: /** @param {number} others */ (others) => `You and ${counted(others, 'other person', 'other people')} are here.`,
    sharing: 'You are sharing your screen.',
    handUp: 'Your hand is raised.',
    came: /** @param {string} name */ (name) => `${isolated(name)} joined.`,
    went: /** @param {string} name */ (name) => `${isolated(name)} left.`,
    hand: /** @param {string} name */ (name) => `${isolated(name)} raised their hand.`,
    away: /** @param {string} name */ (name) => `${isolated(name)} lost their connection and may be back in a moment.`,
    backOther: /** @param {string} name */ (name) => `${isolated(name)} is connected again.`,
    wrote: /** @param {string} name */ (name) => `New message from ${isolated(name)}.`,
    backAgain: 'You are connected again.',
    mutedByHost: 'A host muted you. You can unmute yourself.',
    shareStopped: 'A host stopped your screen share.',
    hostNow: 'You are now a host of this room.',
    cohostNow: 'You are now a cohost of this room.',
    guestNow: 'You are now a guest in this room.',
    lockedOn: 'The room is locked.',
    lockedOff: 'The room is no longer locked.',
    lobbyOn: 'The lobby is on. New people wait until a host lets them in.',
    lobbyOff: 'The lobby is off. New people join immediately.',
    chatOn: 'A host turned on the chat.',
    chatOff: 'A host turned off the chat.',
    copied: 'Link copied.',
  },

  // What cannot be sent or received, and what the user can do
  faults: {
    camera: 'Others cannot see or hear you yet. Still trying… If it takes too long, leave the room and join again.',
    cameraFull: 'Others cannot see or hear you yet, because the server has reached its bandwidth limit. Still trying… Turn your camera off so that others can at least hear you.',
    video: 'Others cannot see you yet. Still trying…',
    videoFull: 'Others cannot see you yet, because the server has reached its bandwidth limit. Still trying…',
    screen: 'Others cannot see your screen yet. Still trying… If it takes too long, stop sharing and share again.',
    screenFull: 'Others cannot see your screen yet, because the server has reached its bandwidth limit. Still trying…',
    others: /** @param {string} name */ (name) => `You cannot see or hear ${name ? isolated(name) : 'some people'} yet. Still trying… If it takes too long, leave the room and join again.`,
    othersFull: /** @param {string} name */ (name) =>
      `You cannot see or hear ${name ? isolated(name) : 'some people'} yet, because the server has reached its bandwidth limit. Still trying… Ask people to turn their cameras off.`,
    othersFinal: /** @param {string} name */ (name) => `You cannot see or hear ${name ? isolated(name) : 'some people'}. Leave the room and join again.`,
    screens: /** @param {string} name */ (name) => `You cannot see ${name ? `${isolated(name)}’s screen` : 'some of the shared screens'} yet. Still trying… If it takes too long, leave the room and join again.`,
    screensFull: /** @param {string} name */ (name) =>
      `You cannot see ${name ? `${isolated(name)}’s screen` : 'some of the shared screens'} yet, because the server has reached its bandwidth limit. Still trying… Ask people to turn their cameras off.`,
    screensFinal: /** @param {string} name */ (name) => `You cannot see ${name ? `${isolated(name)}’s screen` : 'some of the shared screens'}. Leave the room and join again.`,
  },

  // How a visit ends: a title, and what to do next
  over: {
    left: ['You left the room', 'You can come back at any time.'],
    removed: ['A host removed you from the room', 'You can try to join again.'],
    banned: ['A host banned you from this room', 'You cannot join it again. You can open another room.'],
    closed: ['This room was closed', 'An operator of this site closed it. You can open another room.'],
    replaced: ['You joined this room on another device', 'To continue here, join again.'],
    room_full: ['This room is full', 'Try again when someone has left, or ask a host to raise its capacity.'],
    room_locked: ['This room is locked', 'Ask a host to unlock it, then try again.'],
    room_mesh: ['This room has changed', 'Its members can now see each other’s IP addresses. Join again only if you accept that.'],
    room_other: ['Your room has ended', 'A different room now has this name, and different people may be in it. Join only if that is the room you want.'],
    room_refused: ['A host did not let you in', 'You can ask again in a minute.'],
    room_banned: ['You are banned from this room', 'You can open another room.'],
    room_not_found: ['This room does not exist', 'Check the link. On this site, only operators can create rooms.'],
    media_unavailable: ['Audio and video are not available', 'The server cannot transmit them right now. Try again later.'],
    not_permitted: ['You are not allowed to join this room', 'Ask for a new invitation.'],
    roomEnded: ['This room has ended', 'Ask the site that sent you here for a new invitation.'],
    invitation: ['You cannot join with this invitation', 'This invitation no longer works. Ask for a new one.'],
    connectionLost: ['The connection to the room was lost', 'Check your network, then join again.'],
    unreadable: ['This link does not work', 'Part of it is missing or damaged. Ask for the link again, or open another room.'],
    unknown: ['You are no longer in the room', 'Try to join again.'],
  },

  // Problems
  troubles: {
    room_mesh: 'In this room, members can see each other’s IP addresses. To join anyway, press Join.',
    room_no_password: 'This room has no password, so it may not be the room you expect. Anyone who knows its name can join. To join anyway, press Join.',
    wrong_password: 'Wrong password. Try again.',
    rate_limited: 'Too many requests. Wait a moment, then try again.',
    already_joined: 'You are already waiting to join this room in another tab. Continue in that tab, or cancel there and try again.',
    invalid_name: 'This name cannot be used. Choose another one.',
    share_hosts: 'Only hosts and cohosts can share their screen in this room.',
    share_failed: 'The screen could not be shared. Try again.',
    not_sent: 'Others can no longer see or hear you. Leave the room and join again.',
    share_unsupported: 'This browser does not support screen sharing. Use a browser on a computer.',
    copy_failed: 'The link could not be copied. Select it and copy it manually.',
    room_full: 'The room is full. Raise its capacity first.',
    not_permitted: 'You are not allowed to do this in this room. Ask a host.',
    not_found: 'This person is no longer here.',
    offline_queue_full: 'The connection was lost. Try again when it is restored.',
    camera_failed: 'The camera could not be started. Check whether another program is using it, then try again.',
    microphone_failed: 'The microphone could not be started. Check whether another program is using it, then try again.',
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
