// The text of the page `/nearby`, in addition to the shared text in `../shared/strings.js`, which explains how to
// translate it.
import { stringsFor } from '../shared/strings.js';

/**
 * Wraps a name in Unicode isolates for use inside a sentence, as in `../shared/strings.js`.
 * @param {string} name
 */
const isolated = (name) => `\u2068${name}\u2069`;
const plural = new Intl.PluralRules('en');
/** @param {number} count @param {string} one @param {string} other */
const counted = (count, one, other) => `${count.toLocaleString('en')} ${plural.select(count) === 'one' ? one : other}`;

/** @param {number} milliseconds @returns {string} such as 0:07, 12:30, 1:02:03 */
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
  headline: 'See who is nearby and call them.',
  pitch: 'Go online to see who is nearby, then press “Call” next to a person.',

  // The first screen
  nameHint: 'Shown to others. If you leave it empty, we pick one for you.',
  position: 'Show people near me',
  positionHint: 'Your browser will ask for your location. The server stores only your approximate area, about 2 km wide. '
    + 'Others see only a rough distance, such as “within 5 miles”. Without your location, people can still find you by your link.',
  enter: 'Go online',
  leave: 'Go offline',
  guestNote: 'You are a guest in this tab. Others see you as a different person, without your contacts and call history. '
    + 'This browser deletes the guest’s data when you close the tab.',

  // The list
  panels: { people: 'Nearby', contacts: 'Contacts', log: 'Calls', settings: 'Settings' },
  sections: 'Sections',
  missedCount: /** @param {number} count */ (count) => counted(count, 'missed call', 'missed calls'),
  call: 'Call',
  callName: /** @param {string} name */ (name) => `Call ${name}`,
  voiceName: /** @param {string} name */ (name) => `Voice call ${name}`,
  more: /** @param {string} name */ (name) => `More options for ${name}`,
  voice: 'Voice call',
  busy: 'In a call',
  online: 'Online',
  offline: 'Offline',
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
  nobody: 'No one else is here yet. People appear here when they come online.',
  looking: 'Looking for people nearby…',
  further: 'Farther away',
  nearer: 'Closer',
  positions: {
    off: 'Share your location to see people nearby and to be seen by them.',
    asking: 'Allow location access when your browser asks.',
    on: '',
    refused: 'Location access is blocked for this page. Allow it in the address bar and try again, or find people by their link.',
    unavailable: 'Your location could not be determined. Try again, or find people by their link.',
    insecure: 'Your browser shares your location only over HTTPS. You can still find people by their link.',
  },
  usePosition: 'Share my location',
  forgetPosition: 'Stop sharing my location',
  find: 'Find by ID or link',
  findHint: 'ID or link',
  findButton: 'Find',
  finding: 'Searching…',
  findNobody: 'No one has this ID. Ask the person for their link again.',
  findBad: 'This is not a link or an ID. An ID has 32 characters, and a link ends with an ID.',
  findSelf: 'This is your own link or ID.',
  yourLink: 'Your link',
  yourLinkHint: 'Anyone who has this link can find and call you, wherever you are.',
  copy: 'Copy link',
  yourLinkQr: 'QR code for your link',
  codeQr: 'QR code for linking another device',
  qrLater: 'The QR code will appear in a moment.',

  // Contacts
  noContacts: 'No contacts yet. After a chat or call, press “Keep in touch”. When both of you do, you become contacts.',
  removeContact: 'Remove from contacts',

  // The call history
  noCalls: 'No calls yet.',
  moreCalls: 'Earlier calls',
  forgetCall: /** @param {string} name @param {string} when */ (name, when) => `Delete the call with ${name}, ${when}`,
  forgetLog: 'Delete all calls',
  directions: { outgoing: 'Outgoing', incoming: 'Incoming' },
  kinds: { video: 'video', voice: 'voice' },
  /** @type {Record<import('./types.js').Direction, Record<import('./types.js').Outcome, string>>} */
  outcomes: {
    outgoing: {
      hungUp: 'You called', ended: 'You called', declined: 'Declined', cancelled: 'You canceled', missed: 'No answer',
      unanswered: 'No answer', busy: 'Busy', unreachable: 'Unreachable', failed: 'Could not connect',
      connectionLost: 'Connection lost', answeredElsewhere: 'You called', declinedElsewhere: 'Declined', merged: 'You called each other',
    },
    incoming: {
      hungUp: 'Called you', ended: 'Called you', declined: 'You declined', cancelled: 'Caller hung up', missed: 'Missed', unanswered: 'Missed',
      busy: 'You were busy', unreachable: 'Could not reach you', failed: 'Could not connect', connectionLost: 'Connection lost',
      answeredElsewhere: 'Answered on another device', declinedElsewhere: 'Declined on another device', merged: 'You called each other',
    },
  },

  // Settings
  appearance: 'Your profile',
  visible: 'Show me to people nearby',
  doNotDisturb: 'Do not disturb',
  doNotDisturbHint: 'Your devices do not ring. Callers see that you are busy.',
  ringable: 'Who may call me',
  ringables: { everyone: 'Everyone', contacts: 'My contacts', nobody: 'No one' },
  unit: 'Show distances in',
  units: { mi: 'miles', km: 'kilometers' },
  push: 'Notify me of calls',
  pushHint: {
    unavailable: 'This browser does not support notifications.',
    off: 'Turn this on to be notified of calls even while this page is closed, if your browser and this server support it. The notification does not show who is calling.',
    busy: 'One moment…',
    on: 'You are notified of calls even while this page is closed. Open the notification to see who is calling.',
    onPage: 'You are notified only while this page is open, because push notifications are not available here.',
    refused: 'Notifications are blocked for this page. Allow them in the address bar, then try again.',
  },
  devices: 'Your devices',
  devicesHint: 'Linked devices share one account: they ring together and have the same contacts and call history.',
  thisDevice: 'This device',
  linkedOn: /** @param {string} date */ (date) => `Linked ${date}`,
  unnamedDevice: 'Unnamed device',
  unlink: 'Unlink',
  unlinkName: /** @param {string} name */ (name) => `Unlink ${name}`,
  makeCode: 'Link another device',
  codeHint: 'Scan the QR code with your other device, or enter the code in Settings on that device. The code works only once.',
  codeUntil: /** @param {string} time */ (time) => `Valid until ${time}.`,
  code: 'Code from your other device',
  useCode: 'Link this device',
  blockedPeople: 'Blocked people',
  noBlocked: 'No one is blocked.',
  block: 'Block',
  unblock: 'Unblock',
  unblockName: /** @param {string} name */ (name) => `Unblock ${name}`,
  data: 'Your data',
  export: 'Download my data',
  delete: 'Delete my account',

  // Questions
  questions: {
    delete: 'Delete your account on all devices? Your name, contacts, call history and block list will be deleted for good.',
    link: 'Link this device to the other account? This device’s contacts and call history will be replaced by that account’s.',
    unlink: /** @param {string} name */ (name) => `Unlink ${isolated(name)}? It will no longer ring for your calls, and will have its own account.`,
    block: /** @param {string} name */ (name) => `Block ${isolated(name)}? You will no longer be able to see or call each other. If you are in a call with each other, it will end.`,
    forgetLog: 'Delete all calls from your call history?',
  },
  answers: { delete: 'Delete account', link: 'Link', unlink: 'Unlink', block: 'Block', forgetLog: 'Delete all' },

  // Calls
  accept: 'Accept',
  acceptVoice: 'Accept without video',
  decline: 'Decline',
  end: 'End',
  switchCamera: 'Switch camera',
  incoming: {
    video: /** @param {string} name */ (name) => `${name} is calling`,
    voice: /** @param {string} name */ (name) => `Voice call from ${name}`,
  },
  waitingCall: /** @param {string} name */ (name) => `${isolated(name)} is calling. Accepting ends the current call.`,
  callControls: 'Call controls',
  inCall: 'In a call',
  incomingCall: 'Incoming call',
  elapsed: 'Call duration',
  ringSilent: 'Tap or click the page to hear the ringtone.',
  voiceOnly: 'No video',
  callAgain: 'Call again',
  callBack: 'Call back',
  callVoice: 'Voice call',
  overAgain: /** @param {string} name */ (name) => `Call ${isolated(name)} again?`,
  overBack: /** @param {string} name */ (name) => `Call ${isolated(name)} back?`,
  overKeep: /** @param {string} name */ (name) => `Would you like to keep in touch with ${isolated(name)}?`,
  notification: { title: 'Confab', body: /** @param {string} name */ (name) => `${name} is calling you.`, answer: 'Open' },

  // The status line
  status: {
    connecting: 'Connecting…',
    welcome: 'Connected. Choose a name, then go online.',
    entering: 'Going online…',
    here: /** @param {string} name */ (name) => `You are online as ${isolated(name)}.`,
    hidden: /** @param {string} name */ (name) => `You are online as ${isolated(name)}, but not shown to people nearby.`,
    disturb: /** @param {string} name */ (name) => `You are online as ${isolated(name)}. Do not disturb is on.`,
    dropped: 'Connection lost. Reconnecting…',
    closed: 'Not connected.',
    back: 'You are connected again.',
    allow: 'Allow camera and microphone access.',
    allowVoice: 'Allow microphone access.',
    calling: /** @param {string} name */ (name) => `Calling ${isolated(name)}…`,
    ringing: /** @param {string} name */ (name) => `Ringing… Waiting for ${isolated(name)} to answer.`,
    waking: /** @param {string} name */ (name) => `Calling ${isolated(name)}… Connecting to their device.`,
    incoming: /** @param {string} name */ (name) => `${isolated(name)} is calling.`,
    joining: /** @param {string} name */ (name) => `Connecting with ${isolated(name)}…`,
    talking: /** @param {string} name */ (name) => `You are talking with ${isolated(name)}.`,
    away: /** @param {string} name */ (name) => `${isolated(name)} lost their connection and may be back in a moment.`,
    saved: 'Saved.',
    linked: 'This device is now linked.',
    deviceUnlinked: 'The device was unlinked.',
    personBlocked: 'Blocked. You can unblock people in Settings.',
    personUnblocked: 'Unblocked.',
    copied: 'Copied.',
  },

  // How a call ended
  /** @type {Record<import('./types.js').Direction, Record<import('./types.js').Outcome, (name: string, milliseconds: number | null) => string>>} */
  over: {
    outgoing: {
      hungUp: (name, time) => `${isolated(name)} ended the call.${lasted(time)}`,
      ended: (_, time) => `The call ended.${lasted(time)}`,
      declined: (name) => `${isolated(name)} declined the call.`,
      cancelled: (name) => `You canceled the call to ${isolated(name)}.`,
      missed: (name) => `${isolated(name)} did not answer.`,
      unanswered: (name) => `${isolated(name)} did not answer.`,
      busy: (name) => `${isolated(name)} is busy. Try again later.`,
      unreachable: (name) => `${isolated(name)} cannot be reached right now.`,
      failed: (name) => `The call with ${isolated(name)} could not be connected. Check your network and try again.`,
      connectionLost: (name) => `The connection with ${isolated(name)} was lost and the call ended.`,
      answeredElsewhere: () => 'The call continues on your other device.',
      declinedElsewhere: (name) => `${isolated(name)} declined the call.`,
      merged: () => '',
    },
    incoming: {
      hungUp: (name, time) => `${isolated(name)} ended the call.${lasted(time)}`,
      ended: (_, time) => `The call ended.${lasted(time)}`,
      declined: (name) => `You declined the call from ${isolated(name)}.`,
      cancelled: (name) => `${isolated(name)} hung up before you answered.`,
      missed: (name) => `You missed a call from ${isolated(name)}.`,
      unanswered: (name) => `You missed a call from ${isolated(name)}.`,
      busy: (name) => `${isolated(name)} called while you were busy.`,
      unreachable: (name) => `${isolated(name)} called but could not reach you.`,
      failed: (name) => `The call with ${isolated(name)} could not be connected. Check your network and try again.`,
      connectionLost: (name) => `The connection with ${isolated(name)} was lost and the call ended.`,
      answeredElsewhere: () => 'You answered on another device.',
      declinedElsewhere: () => 'You declined on another device.',
      merged: () => '',
    },
  },

  media: {
    refused: 'The camera and microphone are blocked for this page. Allow them in the address bar, then try again.',
    missing: 'No camera or microphone was found. Connect one, then try again.',
    busy: 'Another program is using the camera or microphone. Close it, then try again.',
    insecure: 'Your browser allows the camera only over HTTPS. Open this page with https:// to call.',
    lost: 'Your camera was disconnected. Reconnect it, then turn it on.',
    unheard: 'Your microphone was disconnected, so you cannot be heard. Reconnect it or connect another one. The call continues.',
    unknown: 'The camera or microphone could not be started. Try again.',
  },

  /** @type {Record<string, string>} */
  troubles: {
    not_found: 'This person is no longer available.',
    call_self: 'You cannot call yourself.',
    call_not_allowed: 'This person is not accepting calls from you.',
    elsewhere: 'You are already in a call or chat, here or in another tab. End it first.',
    rate_limited: 'Too many requests. Wait a moment, then try again.',
    call_state: 'That is not possible right now. The call may have ended, or may still be connecting.',
    invalid_name: 'This name cannot be used. Choose another name with at most 40 characters.',
    link_invalid: 'This code is wrong, already used or expired. Get a new code on your other device.',
    position_invalid: 'Your browser reported an invalid location. Try again.',
    position_too_fast: 'Your location changed unusually fast. It will be checked again automatically.',
    push_invalid: 'Notifications could not be turned on in this browser. Try again.',
    push_not_allowed: 'This server does not support your browser’s notification service.',
    too_many_connections: 'There are too many connections from your network. Close other Confab tabs, then try again.',
    connection_restarted: 'The connection was lost. Try again.',
    deleted: 'Your account was deleted. Go online to create a new one.',
    unlinked: 'This device was unlinked. Go online to create a new account on it.',
    export_failed: 'The download failed. Try again.',
    copy_failed: 'Your browser did not allow copying. Select the link and copy it manually.',
  },
};

/** @typedef {typeof en} NearbyStrings */
/** @typedef {import('../shared/strings.js').Strings & {nearby: NearbyStrings}} Strings */

/** @type {Record<string, NearbyStrings>} */
const catalogs = { en };

/**
 * Returns the shared text and that of this page, in the best language for a user who reads these languages. English if
 * there is none.
 * @param {readonly string[]} languages
 * @returns {{language: string, strings: Strings}}
 */
export function nearbyStringsFor(languages) {
  const { language, strings } = stringsFor(languages);
  return { language, strings: { ...strings, nearby: catalogs[language] ?? en } };
}

/**
 * Returns miles if the first language belongs to a region with miles on road signs, otherwise kilometers.
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
