// The words of the page `/nearby`, beside those it shares with the front page (`../strings.js`); translated in the same way.
import { stringsFor } from '../shared/strings.js';

/**
 * A name inside a sentence, isolated: see `../strings.js`.
 * @param {string} name
 */
const who = (name) => `\u2068${name}\u2069`;
const plural = new Intl.PluralRules('en');
/** @param {number} count @param {string} one @param {string} other */
const counted = (count, one, other) => `${count.toLocaleString('en')} ${plural.select(count) === 'one' ? one : other}`;

/** @param {number} milliseconds @returns {string} as a clock shows it: 0:07, 12:30, 1:02:03 */
export function duration(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const two = (/** @type {number} */ value) => String(value).padStart(2, '0');
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/** @param {number | null} milliseconds */
const lasted = (milliseconds) => (milliseconds === null ? '' : ` It lasted ${duration(milliseconds)}.`);

const en = {
  title: 'Confab – people nearby',
  titles: { ringing: /** @param {string} name */ (name) => `${name} is calling – Confab`, call: 'In a call – Confab' },
  headline: 'See who is nearby, and call them.',
  pitch: 'You appear under a name you choose. Press the green button beside somebody, their device rings, and you talk.',

  // The first screen
  nameHint: 'Others see it. Left empty, you get a pleasant one.',
  position: 'Show who is near me',
  positionHint: 'Your browser asks for your position. The server rounds it to a square of about 2 km before it does anything with it, '
    + 'and others read only a rough distance, such as “within 5 miles”. Without it, people find you by your link.',
  enter: 'Enter',
  leave: 'Go offline',
  guestNote: 'This tab is a guest: somebody else than you in your other tabs.',

  // The list
  panels: { people: 'Nearby', contacts: 'Contacts', log: 'Calls', settings: 'Settings' },
  sections: 'Sections',
  missedCount: /** @param {number} count */ (count) => counted(count, 'missed call', 'missed calls'),
  call: 'Call',
  callName: /** @param {string} name */ (name) => `Call ${name}`,
  voiceName: /** @param {string} name */ (name) => `Voice call ${name}`,
  more: /** @param {string} name */ (name) => `More about ${name}`,
  voice: 'Voice call',
  busy: 'In a call',
  online: 'Online',
  offline: 'Not here',
  within: {
    mi: /** @param {number} edge */ (edge) => `within ${counted(edge, 'mile', 'miles')}`,
    km: /** @param {number} edge */ (edge) => `within ${edge.toLocaleString('en')} km`,
  },
  radius: 'Within',
  edge: {
    mi: /** @param {number} edge */ (edge) => counted(edge, 'mile', 'miles'),
    km: /** @param {number} edge */ (edge) => `${edge.toLocaleString('en')} km`,
  },
  listOf: 'People nearby',
  nobody: 'Nobody else is here yet. The list fills by itself as people come.',
  looking: 'Looking around…',
  further: 'Further away',
  nearer: 'Nearer',
  positions: {
    off: 'Without a position nobody is listed here, and you are in nobody’s list.',
    asking: 'Your browser is asking: please allow your position.',
    on: '',
    refused: 'Your position is blocked for this page. Allow it in the address bar, then try again – or find people by their link.',
    unavailable: 'Your position could not be found. Try again – or find people by their link.',
    insecure: 'Browsers give no position to a page that came without https. Find people by their link.',
  },
  usePosition: 'Use my position',
  forgetPosition: 'Forget my position',
  find: 'Find by id or link',
  findHint: 'Somebody’s link or id',
  findButton: 'Find',
  finding: 'Looking for them…',
  findNobody: 'Nobody has this id. Ask for their link again.',
  findBad: 'This is neither a link nor an id. A link ends in 32 characters.',
  findSelf: 'That is you.',
  yourLink: 'Your link',
  yourLinkHint: 'Whoever has it can find and call you, wherever you are.',
  copy: 'Copy link',
  qr: /** @param {string} text */ (text) => `QR code of ${text}`,

  // Contacts
  noContacts: 'Nobody yet. After a chat or a call, press “Keep in touch”: when the other does too, they appear here.',
  removeContact: 'Remove from contacts',

  // The log
  noCalls: 'No calls yet.',
  moreCalls: 'Earlier calls',
  forgetCall: /** @param {string} name @param {string} when */ (name, when) => `Delete the call with ${name}, ${when}`,
  forgetLog: 'Delete all calls',
  directions: { outgoing: 'Outgoing', incoming: 'Incoming' },
  kinds: { video: 'video', voice: 'voice' },
  /** @type {Record<import('./types.js').Direction, Record<import('./types.js').Outcome, string>>} */
  outcomes: {
    outgoing: {
      hungUp: 'You called', ended: 'You called', declined: 'Declined', cancelled: 'You cancelled', missed: 'No answer',
      unanswered: 'No answer', busy: 'Was busy', unreachable: 'Could not be reached', failed: 'Could not be connected',
      connectionLost: 'Connection lost', answeredElsewhere: 'You called', declinedElsewhere: 'Declined', merged: 'You called each other',
    },
    incoming: {
      hungUp: 'Called you', ended: 'Called you', declined: 'You declined', cancelled: 'Rang off', missed: 'Missed', unanswered: 'Missed',
      busy: 'You were busy', unreachable: 'Did not reach you', failed: 'Could not be connected', connectionLost: 'Connection lost',
      answeredElsewhere: 'Answered on another device', declinedElsewhere: 'Declined on another device', merged: 'You called each other',
    },
  },

  // Settings
  appearance: 'How you are here',
  visible: 'Show me in the lists of others',
  doNotDisturb: 'Do not disturb',
  doNotDisturbHint: 'Nobody rings. Callers are told that you are busy.',
  ringable: 'Who may call me',
  ringables: { everyone: 'Everybody', contacts: 'My contacts', nobody: 'Nobody' },
  unit: 'Distances in',
  units: { mi: 'miles', km: 'kilometres' },
  push: 'Notify me of calls',
  pushHint: {
    unavailable: 'This browser has no notifications.',
    off: 'Also when this page is closed, where browser and server can do that. A notification names nobody then.',
    busy: 'One moment…',
    on: 'Also when this page is closed. The notification names nobody then: who calls is told when you open it.',
    onPage: 'While this page is open. This browser or server wakes no closed page.',
    refused: 'Notifications are blocked for this page. Allow them in the address bar, then try again.',
  },
  devices: 'Your devices',
  devicesHint: 'Linked devices are one person: they ring together, and share contacts and calls.',
  thisDevice: 'this one',
  unnamedDevice: 'A device',
  unlink: 'Unlink',
  unlinkName: /** @param {string} name */ (name) => `Unlink ${name}`,
  makeCode: 'Link another device',
  codeHint: 'Open this on the other device, or type the code there under Settings. It works once.',
  codeUntil: /** @param {string} time */ (time) => `Valid until ${time}.`,
  code: 'Code from your other device',
  useCode: 'Link this device',
  blockedPeople: 'Blocked people',
  noBlocked: 'Nobody.',
  block: 'Block',
  unblock: 'Unblock',
  unblockName: /** @param {string} name */ (name) => `Unblock ${name}`,
  data: 'What is held about you',
  export: 'Download everything',
  delete: 'Delete me everywhere',

  // Questions
  questions: {
    delete: 'Delete you, on all your devices? Your name, contacts, calls and blocks are gone for good, and nobody finds you any more.',
    link: 'Make this device one of the other device’s person? Its contacts and calls replace those of this device.',
    unlink: /** @param {string} name */ (name) => `Unlink ${who(name)}? It stops ringing for you, and is somebody else from then on.`,
    block: /** @param {string} name */ (name) => `Block ${who(name)}? You see nothing of each other any more, and a call ends.`,
    forgetLog: 'Delete all calls from your log?',
  },
  answers: { delete: 'Delete me', link: 'Link', unlink: 'Unlink', block: 'Block', forgetLog: 'Delete all' },

  // Calls
  accept: 'Accept',
  acceptVoice: 'Accept without video',
  decline: 'Decline',
  end: 'End',
  switchCamera: 'Switch camera',
  incoming: {
    video: /** @param {string} name */ (name) => `${name} is calling`,
    voice: /** @param {string} name */ (name) => `${name} is calling, without video`,
  },
  waitingCall: /** @param {string} name */ (name) => `${who(name)} is calling. Accepting ends this call.`,
  callControls: 'Call',
  inCall: 'In a call',
  incomingCall: 'Incoming call',
  elapsed: 'Time',
  ringSilent: 'Your browser plays no ring before you touch the page.',
  voiceOnly: 'Without video',
  callAgain: 'Call again',
  callBack: 'Call back',
  callVoice: 'Call without video',
  overAgain: /** @param {string} name */ (name) => `Try ${who(name)} again?`,
  overBack: /** @param {string} name */ (name) => `Call ${who(name)} back?`,
  overKeep: /** @param {string} name */ (name) => `Would you like to talk with ${who(name)} again some day?`,
  notification: { title: 'Confab', body: /** @param {string} name */ (name) => `${name} is calling you.`, answer: 'Open' },

  // The status line
  status: {
    connecting: 'Connecting…',
    welcome: 'Connected. Choose a name and enter.',
    entering: 'Entering…',
    here: /** @param {string} name */ (name) => `You are here as ${who(name)}.`,
    hidden: /** @param {string} name */ (name) => `You are here as ${who(name)}, in nobody’s list.`,
    disturb: /** @param {string} name */ (name) => `You are here as ${who(name)}. Nobody rings: do not disturb is on.`,
    dropped: 'Your connection dropped. Getting it back…',
    closed: 'Not connected.',
    back: 'You are connected again.',
    allow: 'Please allow camera and microphone.',
    allowVoice: 'Please allow the microphone.',
    calling: /** @param {string} name */ (name) => `Calling ${who(name)}…`,
    ringing: /** @param {string} name */ (name) => `Ringing… ${who(name)}’s device rings.`,
    waking: /** @param {string} name */ (name) => `Calling ${who(name)}… A sleeping device is being woken.`,
    incoming: /** @param {string} name */ (name) => `${who(name)} is calling.`,
    joining: /** @param {string} name */ (name) => `Connecting with ${who(name)}…`,
    talking: /** @param {string} name */ (name) => `You are talking with ${who(name)}.`,
    away: /** @param {string} name */ (name) => `${who(name)} lost the connection and may come back.`,
    saved: 'Saved.',
    linked: 'This device is linked now.',
    deviceUnlinked: 'The device is unlinked.',
    personBlocked: 'Blocked. Settings has the list.',
    personUnblocked: 'Not blocked any more.',
    copied: 'Copied.',
  },

  // How a call ended
  /** @type {Record<import('./types.js').Direction, Record<import('./types.js').Outcome, (name: string, milliseconds: number | null) => string>>} */
  over: {
    outgoing: {
      hungUp: (name, time) => `${who(name)} ended the call.${lasted(time)}`,
      ended: (_, time) => `The call ended.${lasted(time)}`,
      declined: (name) => `${who(name)} declined the call.`,
      cancelled: (name) => `You cancelled the call to ${who(name)}.`,
      missed: (name) => `${who(name)} did not answer.`,
      unanswered: (name) => `${who(name)} did not answer.`,
      busy: (name) => `${who(name)} is busy. Try again later.`,
      unreachable: (name) => `${who(name)} cannot be reached at the moment.`,
      failed: (name) => `The call with ${who(name)} could not be connected. Check your network, then try again.`,
      connectionLost: (name) => `The connection with ${who(name)} was lost, and the call with it.`,
      answeredElsewhere: () => 'The call goes on on another device of yours.',
      declinedElsewhere: (name) => `${who(name)} declined the call.`,
      merged: () => '',
    },
    incoming: {
      hungUp: (name, time) => `${who(name)} ended the call.${lasted(time)}`,
      ended: (_, time) => `The call ended.${lasted(time)}`,
      declined: (name) => `You declined the call from ${who(name)}.`,
      cancelled: (name) => `${who(name)} stopped calling.`,
      missed: (name) => `You missed a call from ${who(name)}.`,
      unanswered: (name) => `You missed a call from ${who(name)}.`,
      busy: (name) => `${who(name)} called while you were busy.`,
      unreachable: (name) => `${who(name)} called and did not reach you.`,
      failed: (name) => `The call with ${who(name)} could not be connected. Check your network, then try again.`,
      connectionLost: (name) => `The connection with ${who(name)} was lost, and the call with it.`,
      answeredElsewhere: () => 'You answered on another device.',
      declinedElsewhere: () => 'You declined on another device.',
      merged: () => '',
    },
  },

  media: {
    refused: 'The camera and microphone are blocked for this page. Allow them in the address bar, then call again.',
    missing: 'No camera or microphone was found. Connect one, then call again.',
    busy: 'The camera or microphone is used by another program. Close that one, then call again.',
    insecure: 'Browsers give no camera to a page that came without https. Open this page over https to call.',
    lost: 'Your camera was disconnected. Connect it again, then turn it on.',
    unheard: 'Your microphone was disconnected, and you are not heard. Connect it again, or another: the call goes on.',
    unknown: 'The camera did not start. Try again.',
  },

  /** @type {Record<string, string>} */
  troubles: {
    not_found: 'They are not to be found any more.',
    call_self: 'You cannot call yourself.',
    call_not_allowed: 'They let only some people call them.',
    elsewhere: 'You are in a call or a chat already, here or in another tab. End that first.',
    rate_limited: 'That was a lot at once. Wait a moment, then try again.',
    call_state: 'The call changed meanwhile.',
    invalid_name: 'This name cannot be used. Choose another, of at most 40 characters.',
    link_invalid: 'This code is wrong, was used already or is too old. Make a new one on the other device.',
    position_invalid: 'Your browser told a position that is none. Try again.',
    position_too_fast: 'Your position jumped further than anybody travels. It is tried again by itself.',
    push_invalid: 'This browser’s notifications cannot be used. Try again.',
    push_not_allowed: 'This server does not use the notification service of your browser.',
    too_many_connections: 'Too many tabs or people use your internet address. Close some, then try again.',
    connection_restarted: 'The connection was lost meanwhile. Try again.',
    deleted: 'You are deleted. Enter to be somebody new.',
    unlinked: 'This device was unlinked. Enter to go on as somebody of its own.',
    export_failed: 'The download did not work. Try again.',
    copy_failed: 'The browser did not let the page copy. Select the link and copy it yourself.',
  },
};

/** @typedef {typeof en} NearbyStrings */
/** @typedef {import('../shared/strings.js').Strings & {nearby: NearbyStrings}} Strings */

/** @type {Record<string, NearbyStrings>} */
const catalogues = { en };

/**
 * The words of both pages, in the best language for somebody who reads these.
 * @param {readonly string[]} languages
 * @returns {{language: string, strings: Strings}}
 */
export function nearbyStringsFor(languages) {
  const { language, strings } = stringsFor(languages);
  return { language, strings: { ...strings, nearby: catalogues[language] ?? en } };
}

/**
 * Miles where road signs have them, kilometres elsewhere.
 * @param {readonly string[]} languages
 * @returns {import('./types.js').Unit}
 */
export function unitFor(languages) {
  try {
    const { region } = new Intl.Locale(languages[0] ?? 'en').maximize();
    return ['US', 'GB', 'LR', 'MM', 'PR', 'VI', 'GU'].includes(region ?? '') ? 'mi' : 'km';
  } catch {
    return 'km';
  }
}
