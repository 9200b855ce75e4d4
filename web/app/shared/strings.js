// Every word of the page, in one catalogue per language. To translate: copy `en`, translate the values, add the copy to
// `catalogues`. Sentences with a number or a name are functions, so that each language can bend them as it must.

/**
 * A name inside a sentence. It was typed by a stranger: isolated, text that runs the other way cannot tear the sentence.
 * @param {string} name
 */
const isolated = (name) => `\u2068${name}\u2069`;

const plural = new Intl.PluralRules('en');
const list = new Intl.ListFormat('en', { type: 'conjunction' });

const either = new Intl.ListFormat('en', { type: 'disjunction' });

/**
 * @param {number} count
 * @param {string} one
 * @param {string} other
 */
const counted = (count, one, other) => `${count.toLocaleString('en')} ${plural.select(count) === 'one' ? one : other}`;

/**
 * At the beginning of a sentence.
 * @param {string} name
 */
const Who = (name) => (name ? isolated(name) : 'Your partner');
/**
 * Inside a sentence.
 * @param {string} name
 */
const whom = (name) => (name ? isolated(name) : 'your partner');

const en = {
  product: 'Confab',
  title: 'Confab – talk with somebody new',
  titles: { waiting: 'Looking… – Confab', matched: 'In a chat – Confab' },
  headline: 'Talk with somebody you have never met.',
  pitch: 'Confab pairs you with one other person, by video or in writing, for as long as you both like.',
  you: 'You',
  partner: 'Partner',
  conversation: 'Conversation',
  noScript: 'Confab is made of JavaScript. Allow it for this page to talk with people.',

  // The form
  name: 'Name',
  nameHint: 'Your partner sees it. May stay empty.',
  interests: 'Interests',
  interestsPlaceholder: 'chess, jazz, gardening',
  interestsHint: 'Press Enter or comma after each. People who share one meet first.',
  interestsFull: 'That is ten, the most there can be.',
  interestAdded: /** @param {string} text */ (text) => `${text} added.`,
  interestRemoved: /** @param {string} text */ (text) => `${text} removed.`,
  removeInterest: /** @param {string} text */ (text) => `Remove ${text}`,
  yourInterests: 'Your interests',
  mode: 'How do you want to talk?',
  video: 'Video',
  videoHint: 'See, hear and write',
  textOnly: 'Text only',
  textOnlyHint: 'Writing, nothing else',
  agree: 'I am 18 or older and keep to the rules',
  rules: 'The rules',
  rulesList: [
    'Be kind. No harassment, no hate, no threats.',
    'Keep your clothes on. Nothing sexual.',
    'No spam, no scams, no advertising.',
    'Do not record anybody without asking.',
    'Keep your full name, address and passwords to yourself.',
  ],
  rulesEnd: 'Next ends a chat at once. Report tells the people who run this site; they can ban who breaks the rules.',
  agreedBefore: 'You agreed to the rules.',
  start: 'Start',
  startNeedsRules: 'Agree to the rules first.',
  startClosed: 'There is no connection to the server.',
  starting: 'One moment…',
  addressNote: 'In a video chat your partner’s computer can see your IP address. Text only does not show it.',
  guestNote: 'This tab is a guest: somebody else than you in your other tabs.',

  // The preview
  previewOff: 'See yourself first. Nothing is sent before you press Start.',
  previewAsking: 'Your browser is asking: please allow camera and microphone.',
  previewText: 'No camera, no microphone. Just words.',
  previewCameraOff: 'Your camera is off. Your partner hears you.',
  previewVoice: 'Microphone only',
  turnOn: 'Turn on camera',
  camera: 'Camera',
  microphone: 'Microphone',
  level: 'Microphone level',
  unnamedCamera: /** @param {number} number */ (number) => `Camera ${number}`,
  unnamedMicrophone: /** @param {number} number */ (number) => `Microphone ${number}`,
  tryAgain: 'Try again',
  useText: 'Use text only',
  useVoice: 'Use microphone only',
  media: {
    refused: 'The camera and microphone are blocked for this page. Allow them in the address bar, then try again – or chat in writing.',
    missing: 'No camera and microphone were found. Connect them and try again – or chat in writing.',
    busy: 'The camera or microphone is used by another program. Close that one and try again – or chat in writing.',
    insecure: 'Browsers give no camera to a page that came without https. Open this page over https – or chat in writing.',
    lost: 'The camera or microphone was disconnected. Connect it and try again – or chat in writing.',
    unknown: 'The camera did not start. Try again – or chat in writing.',
  },

  // The chat
  next: 'Next',
  stop: 'Stop',
  mute: 'Mute',
  cameraOff: 'Camera off',
  report: 'Report',
  block: 'Block',
  cancel: 'Cancel',
  dismiss: 'Close',
  message: 'Message',
  messagePlaceholder: 'Write something…',
  send: 'Send',
  chat: 'Chat',
  messages: 'Messages',
  sayHello: 'Say hello. Nothing written here is kept, unless somebody reports it.',
  chatLater: 'What you two write will appear here.',
  noTextChat: /** @param {string} name */ (name) => `${Who(name)} uses an app without text chat. You can only talk.`,
  isTyping: /** @param {string} name */ (name) => `${Who(name)} is writing…`,
  over: {
    partnerLeft: /** @param {string} name */ (name) => `${Who(name)} left.`,
    partnerNext: /** @param {string} name */ (name) => `${Who(name)} moved on.`,
    next: /** @param {string} name */ (name) => `You left ${whom(name)}.`,
    blocked: /** @param {string} name */ (name) => `You blocked ${whom(name)}.`,
    connectionLost: /** @param {string} _ */ (_) => 'The connection was lost.',
  },
  notSent: 'not sent',
  sentBy: { me: 'You:', partner: 'Partner:' },
  nameless: 'Your partner',
  nobody: 'Nobody yet',
  gone: 'Gone. You can still report.',
  inCommon: /** @param {string[]} interests */ (interests) => `You share ${list.format(interests.map(isolated))}`,
  escapeKey: 'Esc',
  blockQuestion: /** @param {string} name */ (name) => `Never meet ${whom(name)} again?`,
  alone: 'Trying it alone?',
  lookingFor: /** @param {string[]} interests */ (interests) => `People who like ${either.format(interests.map(isolated))} come first`,
  lookingForAnybody: 'Anybody may come',
  aloneLink: 'Open a second tab as a guest',
  guestHint: 'A guest is somebody else than you, so the two tabs can meet.',
  silent: 'Your browser holds back the sound.',
  unblock: 'Turn on the sound',
  pictureComing: 'The picture is on its way',
  noPicture: 'No picture',
  lastPerson: /** @param {string} name */ (name) => `You left the chat with ${whom(name)}.`,

  // Keeping in touch: after a chat, and in a call
  keep: 'Keep in touch',
  keepPromise: /** @param {string} name */ (name) => `${Who(name)} is told. Say it both, and you can call each other later.`,
  keepTold: /** @param {string} name */ (name) => `${Who(name)} was told. If they say it too, you can call each other later.`,
  keepAsked: /** @param {string} name */ (name) => `${Who(name)} would like to keep in touch. Press it too, and you can call each other later.`,
  keepAgreed: /** @param {string} name */ (name) => `You and ${whom(name)} keep in touch: call each other on the page of people nearby.`,
  keepLink: 'Contacts',
  waysIn: 'Ways to meet',
  strangers: 'Strangers',
  peopleNearby: 'People nearby',

  // The report
  reportTitle: /** @param {string} name */ (name) => `Report ${whom(name)}`,
  reportWhat: 'What happened?',
  reportAttached: 'The last 20 lines of your chat are sent along, and kept for 30 days for the people who run this site.',
  reasons: {
    sexual: 'Nudity or sexual behaviour',
    minor: 'Seems to be under age',
    harassment: 'Harassment or hate',
    violence: 'Threats or violence',
    spam: 'Spam or a scam',
    other: 'Something else',
  },
  alsoBlock: 'Also block: we never meet again',
  sendReport: 'Send report',
  reportChoose: 'Choose what happened.',
  reportFailed: 'The report did not get through. Try again.',

  // The status line
  status: {
    connecting: 'Connecting…',
    connectingStart: 'Connecting… The search starts by itself.',
    ready: 'Connected. Ready when you are.',
    readyRules: 'Connected. Agree to the rules, then start.',
    allow: 'Please allow camera and microphone.',
    noCamera: 'The camera is not available.',
    dropped: 'Your connection dropped. Getting it back…',
    closed: 'Not connected.',
    looking: 'Looking for somebody to talk with…',
    lookingNext: 'Looking for somebody else…',
    partnerLeft: /** @param {string} name */ (name) => `${Who(name)} left. Looking for somebody else…`,
    partnerNext: /** @param {string} name */ (name) => `${Who(name)} moved on. Looking for somebody else…`,
    blocked: /** @param {string} name */ (name) => `You will not meet ${whom(name)} again. Looking for somebody else…`,
    connectionLost: 'The connection was lost, and the chat with it. Looking for somebody else…',
    stalled: /** @param {string} name */ (name) => `The picture from ${whom(name)} has stopped. Wait a little, or press Next.`,
    penalty: /** @param {number} seconds */ (seconds) =>
      `You moved on quickly a few times. Going on in ${counted(seconds, 'second', 'seconds')}.`,
    found: /** @param {string} name */ (name) => `You are connected with ${whom(name)}. The picture is on its way…`,
    talking: /** @param {string} name */ (name) => `You are talking with ${whom(name)}. Have fun!`,
    writing: /** @param {string} name */ (name) => `You are chatting with ${whom(name)}. Have fun!`,
    noStream: /** @param {string} name */ (name) => `Nothing to see or hear from ${whom(name)} yet. Wait a little, or press Next.`,
    away: /** @param {string} name */ (name) => `${Who(name)} lost the connection and may come back. Wait a little, or press Next.`,
    back: 'You are connected again.',
    reported: 'Thank you. Your report was sent.',
    longAway: 'You were away for a while, so the search stopped. Start again when you like.',
  },
  countdown: /** @param {number} seconds */ (seconds) => counted(seconds, 'second', 'seconds'),
  people: /** @param {number} online */ (online) => (online <= 1 ? 'Nobody else is here yet' : counted(online, 'person here', 'people here')),

  // Troubles: a sentence and a way on
  reload: 'Reload',
  troubles: {
    version_unsupported: 'This page is out of date. Reload it to get the new one.',
    banned: 'You are banned from this site for now.',
    forbidden_origin: 'This server does not let this page connect.',
    replaced: 'You went on in another tab. This one is at rest.',
    too_many_connections: 'Too many tabs or people use your internet address. Close some, then try again.',
    rate_limited: 'That was a lot at once. Wait a moment, then try again.',
    elsewhere: 'You are already chatting in another tab. Go on there, or close it and try again.',
    invalid_interests: 'The server did not like the interests. Change them and try again.',
    queue_full: 'Too many people from your internet address are waiting. Try again in a while.',
    match_ended: 'The people who run this site ended this chat.',
    connect_failed: 'The server does not answer. It may be back in a moment.',
    unknown: 'Something went wrong. Try again.',
  },
  tryingIn: /** @param {number} seconds */ (seconds) => `Try again in ${counted(seconds, 'second', 'seconds')}.`,

  // The plain page for any session
  session: {
    title: 'Confab – join a session',
    headline: 'Join a session',
    pitch: 'Paste the session and the token a program or an administrator gave you.',
    session: 'Session',
    token: 'Token',
    join: 'Join',
    leave: 'Leave',
    nameless: 'Somebody',
    joining: 'Joining…',
    left: 'You left the session.',
    alone: 'You are in. Nobody else is here yet.',
    here: /** @param {number} others */ (others) => `You are in, with ${counted(others, 'other', 'others')}.`,
    watching: 'This token may watch, but not publish.',
    noSignals: 'This token may not write here.',
    signalsHint: 'Signals of everybody in the session appear here.',
    failed: /** @param {string} why */ (why) => `Joining failed: ${why}`,
    putOut: 'You were put out of the session.',
    away: 'The connection dropped. Getting it back…',
    needsBoth: 'Both are needed.',
  },
};

/** @typedef {typeof en} Strings */

/** @type {Record<string, Strings>} */
const catalogues = { en };

/**
 * The best catalogue for somebody who reads these languages.
 * @param {readonly string[]} languages
 */
export function stringsFor(languages) {
  const language = languages.map((tag) => tag.split('-')[0].toLowerCase()).find((tag) => tag in catalogues) ?? 'en';
  return { language, strings: catalogues[language] };
}

/**
 * The words of a page's own elements: `data-text` for content, `data-label` for the accessible name, `data-hint` for the
 * placeholder. Each names an entry of the catalogue, such as `start` or `session.join`.
 * @param {ParentNode} root @param {Strings} strings
 */
export function fillIn(root, strings) {
  const entry = (/** @type {string} */ path) => {
    const text = path.split('.').reduce((/** @type {any} */ part, key) => part?.[key], strings);
    if (typeof text !== 'string') throw new Error(`no such words: ${path}`);
    return text;
  };
  for (const element of root.querySelectorAll('[data-text]')) element.textContent = entry(element.getAttribute('data-text') ?? '');
  for (const element of root.querySelectorAll('[data-label]')) element.setAttribute('aria-label', entry(element.getAttribute('data-label') ?? ''));
  for (const element of root.querySelectorAll('[data-hint]')) element.setAttribute('placeholder', entry(element.getAttribute('data-hint') ?? ''));
}
