// All text of the pages, in one catalog per language. To translate: copy `en`, translate the values, and add the copy
// to `catalogs`. Sentences with a number or a name are functions, so that each language can adapt them.

/**
 * Isolates a name inside a sentence. Otherwise, right-to-left text in a stranger's name would change the order of the sentence.
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
 * Returns the name for the beginning of a sentence, or "Your partner" if there is no name.
 * @param {string} name
 */
const Who = (name) => (name ? isolated(name) : 'Your partner');
/**
 * Returns the name for use inside a sentence, or "your partner" if there is no name.
 * @param {string} name
 */
const whom = (name) => (name ? isolated(name) : 'your partner');

const en = {
  product: 'Confab',
  title: 'Confab – meet someone new',
  titles: { waiting: 'Searching… – Confab', matched: 'In a chat – Confab' },
  headline: 'Talk to someone new.',
  pitch: 'Confab connects you with one person at a time, by video or text chat, for as long as you both like.',
  you: 'You',
  partner: 'Partner',
  conversation: 'Conversation',
  noScript: 'Confab needs JavaScript. Turn it on in your browser, then reload this page.',

  // The form
  name: 'Name',
  nameHint: 'Shown to your partner (optional)',
  interests: 'Interests',
  interestsPlaceholder: 'chess, jazz, gardening',
  interestsHint: 'Press Enter or type a comma after each one. People who share an interest are matched first.',
  interestsFull: 'You have added ten interests, which is the maximum. Remove one to add another.',
  interestAdded: /** @param {string} text */ (text) => `${text} added.`,
  interestRemoved: /** @param {string} text */ (text) => `${text} removed.`,
  removeInterest: /** @param {string} text */ (text) => `Remove ${text}`,
  yourInterests: 'Your interests',
  mode: 'How do you want to chat?',
  video: 'Video',
  videoHint: 'Camera, microphone and text',
  textOnly: 'Text only',
  textOnlyHint: 'No camera or microphone',
  agree: 'I am 18 or older and agree to the rules',
  rules: 'The rules',
  rulesList: [
    'Be kind. No harassment, no hate, no threats.',
    'Keep your clothes on. Nothing sexual.',
    'No spam, no scams, no advertising.',
    'Do not record anyone without their permission.',
    'Keep your full name, address and passwords to yourself.',
  ],
  rulesEnd: 'Press “Next” to end a chat immediately. Press “Report” to send the chat’s last messages to the operators of this site, who can ban people who break the rules.',
  samplingRule: /** @param {number} seconds */ (seconds) => `In video chats a program of this site checks an image of your camera every ${seconds} ${seconds === 1 ? 'second' : 'seconds'}. It can warn you, blur your video or end the chat. Images are not kept, except the latest one if your partner reports you.`,
  warnings: {
    check: 'Your video may break the rules.',
    operator: 'A warning from the operators of this site, after a report:',
    ended: 'The chat was ended because your video seems to break the rules.',
    next: 'Keep to the rules, or you can be banned.',
    again: 'Change what your camera shows before you start again.',
  },
  ownBlurred: 'Your partner sees your video blurred, because it may break the rules. Change what your camera shows. The next check can end the blur.',
  partnerBlurred: 'This video is blurred because it may break the rules. It is shown again when a check finds it fine.',
  agreedBefore: 'You agreed to the rules.',
  start: 'Start',
  startNeedsRules: 'Agree to the rules first.',
  startClosed: 'Not connected to the server.',
  starting: 'One moment…',
  addressNote: 'In video chats your partner can see your IP address. Text chats hide it.',
  guestNote: 'You are a guest in this tab. Others see you as a different person. This browser deletes the guest’s data when you close the tab.',

  // The preview
  previewOff: 'Check your camera first. Nothing is sent until you press Start.',
  previewAsking: 'Allow camera and microphone access when your browser asks.',
  previewText: 'Text chat needs no camera or microphone.',
  previewCameraOff: 'Your camera is off. Your partner can still hear you.',
  previewVoice: 'Microphone only',
  turnOn: 'Turn on camera',
  camera: 'Camera',
  microphone: 'Microphone',
  level: 'Microphone level',
  unnamedCamera: /** @param {number} number */ (number) => `Camera ${number}`,
  unnamedMicrophone: /** @param {number} number */ (number) => `Microphone ${number}`,
  tryAgain: 'Try again',
  useThisTab: 'Use this tab',
  useText: 'Use text chat',
  useVoice: 'Use microphone only',
  media: {
    refused: 'The camera and microphone are blocked for this page. Allow them in the address bar and try again, or use text chat.',
    missing: 'The camera or microphone was not found. Connect it and try again, or use text chat.',
    busy: 'Another program is using the camera or microphone. Close it and try again, or use text chat.',
    insecure: 'Your browser allows the camera only over HTTPS. Open this page with https://, or use text chat.',
    lost: 'The camera or microphone was disconnected. Reconnect it and try again, or use text chat.',
    unknown: 'The camera could not be started. Try again, or use text chat.',
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
  messagePlaceholder: 'Type a message…',
  send: 'Send',
  chat: 'Chat',
  messages: 'Messages',
  sayHello: 'Say hello. Messages are not stored unless one of you reports the chat.',
  chatLater: 'Your messages will appear here.',
  noTextChat: /** @param {string} name */ (name) => `${Who(name)} uses an app without text chat. You can still talk.`,
  isTyping: /** @param {string} name */ (name) => `${Who(name)} is typing…`,
  over: {
    partnerLeft: /** @param {string} name */ (name) => `${Who(name)} left.`,
    partnerNext: /** @param {string} name */ (name) => `${Who(name)} moved on.`,
    next: /** @param {string} name */ (name) => `You left the chat with ${whom(name)}.`,
    blocked: /** @param {string} name */ (name) => `You blocked ${whom(name)}.`,
    connectionLost: /** @param {string} _ */ (_) => 'The connection was lost.',
  },
  notSent: 'not sent',
  sentBy: { me: 'You:', partner: 'Partner:' },
  nameless: 'Your partner',
  nobody: 'No partner yet',
  gone: 'The chat has ended. You can still report this person.',
  inCommon: /** @param {string[]} interests */ (interests) => `You both like ${list.format(interests.map(isolated))}`,
  escapeKey: 'Esc',
  blockQuestion: /** @param {string} name */ (name) => `Block ${whom(name)}? You will not be matched with each other again.`,
  alone: 'Trying Confab on your own?',
  lookingFor: /** @param {string[]} interests */ (interests) => `People who like ${either.format(interests.map(isolated))} are matched first`,
  lookingForAnybody: 'You can be matched with anyone',
  aloneLink: 'Open a second tab as a guest',
  guestHint: 'Each guest tab is a separate person, so two tabs can be matched.',
  silent: 'Your browser blocked the sound. Press “Turn on sound”.',
  unblock: 'Turn on sound',
  pictureComing: 'Waiting for video…',
  noPicture: 'No video',
  lastPerson: /** @param {string} name */ (name) => `You left the chat with ${whom(name)}.`,

  // Keeping in touch, after a chat and in a call
  keep: 'Keep in touch',
  keepPromise: /** @param {string} name */ (name) => `${Who(name)} will be notified. If you both agree, you can call each other later.`,
  keepSent: /** @param {string} name */ (name) => `${Who(name)} was notified. If they agree too, you can call each other later.`,
  keepAsked: /** @param {string} name */ (name) => `${Who(name)} would like to keep in touch. If you agree too, you can call each other later.`,
  keepAgreed: /** @param {string} name */ (name) => `You and ${whom(name)} are now contacts. You can call each other from the People nearby page.`,
  keepLink: 'Contacts',
  features: 'Ways to meet',
  strangers: 'Strangers',
  rooms: 'Rooms',
  peopleNearby: 'People nearby',

  // The report
  reportTitle: /** @param {string} name */ (name) => `Report ${whom(name)}`,
  reportWhat: 'What happened?',
  reportAttached: 'The last messages of your chat and both IP addresses are sent to the operators of this site, who keep them for a limited time.',
  reasons: {
    sexual: 'Nudity or sexual behavior',
    minor: 'Appears to be underage',
    harassment: 'Harassment or hate',
    violence: 'Threats or violence',
    spam: 'Spam or a scam',
    other: 'Something else',
  },
  alsoBlock: 'Also block this person',
  sendReport: 'Send report',
  reportChoose: 'Choose a reason.',
  reportFailed: 'The report could not be sent. Try again.',

  // The status line
  status: {
    connecting: 'Connecting…',
    connectingStart: 'Connecting… The search will start automatically.',
    ready: 'Connected. Ready when you are.',
    readyRules: 'Connected. Agree to the rules, then press Start.',
    allow: 'Allow camera and microphone access.',
    noCamera: 'The camera is not available.',
    dropped: 'Connection lost. Reconnecting…',
    closed: 'Not connected.',
    looking: 'Looking for someone to talk to…',
    lookingNext: 'Looking for someone else…',
    partnerLeft: /** @param {string} name */ (name) => `${Who(name)} left. Looking for someone else…`,
    partnerNext: /** @param {string} name */ (name) => `${Who(name)} moved on. Looking for someone else…`,
    blocked: /** @param {string} name */ (name) => `You blocked ${whom(name)}. Looking for someone else…`,
    connectionLost: 'The connection was lost and the chat ended. Looking for someone else…',
    stalled: /** @param {string} name */ (name) => `The video from ${whom(name)} has stopped. Wait a moment, or press Next.`,
    penalty: /** @param {number} seconds */ (seconds) =>
      `You skipped several chats quickly. The search continues in ${counted(seconds, 'second', 'seconds')}.`,
    found: /** @param {string} name */ (name) => `You are connected with ${whom(name)}. Waiting for video…`,
    talking: /** @param {string} name */ (name) => `You are talking with ${whom(name)}. Have fun!`,
    writing: /** @param {string} name */ (name) => `You are chatting with ${whom(name)}. Have fun!`,
    noStream: /** @param {string} name */ (name) => `No audio or video from ${whom(name)} yet. Wait a moment, or press Next.`,
    away: /** @param {string} name */ (name) => `${Who(name)} lost their connection and may be back in a moment. Wait, or press Next.`,
    back: 'You are connected again.',
    reported: 'Thank you. Your report was sent.',
    longAway: 'You were away for a while, so the search stopped. Press Start to search again.',
  },
  countdown: /** @param {number} seconds */ (seconds) => counted(seconds, 'second', 'seconds'),
  people: /** @param {number} online */ (online) => (online <= 1 ? 'No one else is online yet' : counted(online, 'person online', 'people online')),

  // Problems, each with a next step
  reload: 'Reload',
  checkLink: 'Check camera and network',
  troubles: {
    version_unsupported: 'This page is out of date. Reload it to get the new version.',
    banned: 'You are banned from this site.',
    forbidden_origin: 'This server does not accept connections from this page. Open Confab at the server’s own address.',
    replaced: 'You continued in another tab, so this tab is paused.',
    too_many_connections: 'There are too many connections from your network. Close other Confab tabs, then try again.',
    rate_limited: 'Too many requests. Wait a moment, then try again.',
    elsewhere: 'You are already chatting in another tab. Continue there, or close it and try again.',
    invalid_interests: 'These interests were not accepted. Change them and try again.',
    queue_full: 'Too many people from your network are waiting. Try again later.',
    rules_changed: 'The rules have changed. Read and agree to them to continue.',
    match_ended: 'The operators of this site ended this chat.',
    connect_failed: 'The server is not responding. Try again in a moment.',
    unknown: 'Something went wrong. Try again.',
  },
  // Replaces the sentence about trying again at the end of a text with one that says when.
  tryingIn: /** @param {string} text @param {number} seconds */ (text, seconds) =>
    `${text.replace(/ (Wait a moment, then try|Try) again[^.]*\.$/, '')} Try again in ${counted(seconds, 'second', 'seconds')}.`,

  // The network indicator on each tile
  network: {
    levels: { good: 'good', fair: 'fair', poor: 'poor' },
    names: {
      mine: /** @param {string} level @param {string} _ */ (level, _) => `Your connection: ${level}`,
      theirs: /** @param {string} level @param {string} name */ (level, name) => (name ? `${isolated(name)}’s connection: ${level}` : `Connection: ${level}`),
    },
    good: { mine: 'Your connection is good. Others see and hear you well.', theirs: 'The connection is good.' },
    unknown: 'The connection is not good. It may recover in a moment.',
    // Media that the user sends
    upload: {
      loss: 'Your connection is unstable, so your audio and video may break up for others. Move closer to your router, or use a cable.',
      delay: 'There is a long delay on your connection. Pause downloads and other calls on your network.',
      bandwidth: 'Your upload speed is low, so your video looks blurry to others. Pause uploads and backups, or turn your camera off.',
      device: 'Your device is busy, so your video looks blurry to others. Close other apps and tabs.',
      paused: 'Your video is off because your upload speed is low. Others can still hear you, and your video will resume automatically. Pause uploads and backups.',
    },
    // Media that the user receives, limited by the user's network
    download: {
      loss: 'Your connection is unstable, so audio and video may break up. Move closer to your router, or use a cable.',
      delay: 'There is a long delay on your connection. Pause downloads and other calls on your network.',
      bandwidth: 'Your download speed is low. If it drops further, the video will pause. Pause other downloads on your network.',
      freezes: 'The video keeps freezing. Close other apps and tabs, or move closer to your router.',
      paused: 'The video is paused because your download speed is low. You can still hear them, and the video will resume automatically. Pause other downloads on your network.',
      reconnecting: 'The connection was lost and is being restored. If this takes too long, check your network.',
    },
    // Media that the user receives, limited by the sender's network
    remote: {
      loss: 'Their connection is unstable, so their audio and video may break up. They can move closer to their router, or use a cable.',
      delay: 'There is a long delay on their connection. Give them a moment to answer.',
      bandwidth: 'Their upload speed is low, so their video looks blurry. If they turn their camera off, you will hear them better.',
    },
  },

  // The front page
  front: {
    title: 'Confab – talk face to face',
    headline: 'Talk face to face.',
    pitch: 'Video chat in your browser. No account, nothing to install.',
    strangers: 'Talk to one new person at a time, by video or text.',
    nearby: 'See who is close to you, and call them.',
    rooms: 'Meet people you know. Share a link, and everyone who opens it can join.',
  },

  // The page `/rooms`
  roomsPage: {
    title: 'Confab – rooms',
    headline: 'Meet in a room.',
    pitch: 'Everyone who opens a room’s link can see and hear each other. A room lasts as long as someone is in it.',
    create: 'New room',
    createHint: 'Creates a room with a name that no one can guess. Share its link to invite people.',
    name: 'Room name',
    namePlaceholder: 'book club',
    nameHint: 'Anyone who knows the name can join.',
    join: 'Join',
    mesh: 'Peer-to-peer (small groups)',
    meshHint: 'Applies to a room that you create. Audio and video do not pass through the server, and members can see each other’s IP addresses.',
    nameMissing: 'Enter the name of the room.',
    nameInvalid: 'This room name cannot be used. Use up to 64 characters, without “/”.',
    recent: 'Recent rooms',
    forget: /** @param {string} name */ (name) => `Remove ${isolated(name)} from this list`,
  },

  // The page `/try`, for any session
  session: {
    title: 'Confab – join a session',
    headline: 'Join a session',
    pitch: 'Paste the session ID and the token that an app or an administrator gave you.',
    session: 'Session ID',
    token: 'Token',
    join: 'Join',
    leave: 'Leave',
    nameless: 'Participant',
    joining: 'Joining…',
    left: 'You left the session.',
    outside: 'You are not in the session.',
    alone: 'You joined the session. No one else is here yet.',
    here: /** @param {number} others */ (others) => `You are in the session with ${counted(others, 'other person', 'other people')}.`,
    recorded: 'This session is being recorded.',
    broadcast: 'This session is being broadcast live.',
    recordedAndBroadcast: 'This session is being recorded and broadcast live.',
    askRecording: 'This session is being recorded. May your video and audio be part of the recording?',
    beRecorded: 'Record me',
    askBroadcast: 'This session is being broadcast live. May your video and audio be part of the broadcast?',
    beBroadcast: 'Broadcast me',
    leaveOut: 'Leave me out',
    watching: 'With this token you can watch and listen, but not send audio or video.',
    noSignals: 'This token does not let you send messages.',
    signalsHint: 'Messages and signals from everyone in the session appear here.',
    failed: /** @param {string} why */ (why) => `Could not join the session: ${why}`,
    putOut: 'A moderator removed you from this session. To join again, ask for a new token.',
    tookPlace: 'You left this session, probably because you joined it on another device or in another tab. To continue here, press Join.',
    replaced: 'You continued in another tab or on another device. To continue here, press Join.',
    lost: 'The connection to the server could not be restored. Press Join to try again.',
    over: 'This chat is over.',
    away: 'Connection lost. Reconnecting…',
    needsBoth: 'Enter the session ID and the token.',
  },
};

/** @typedef {typeof en} Strings */

/** @type {Record<string, Strings>} */
const catalogs = { en };

/**
 * Returns the best catalog for a user who reads these languages, or the English one if there is none.
 * @param {readonly string[]} languages
 */
export function stringsFor(languages) {
  const language = languages.map((tag) => tag.split('-')[0].toLowerCase()).find((tag) => tag in catalogs) ?? 'en';
  return { language, strings: catalogs[language] };
}

/**
 * Fills in the text of a page's static elements: `data-text` for the content, `data-label` for the accessible name,
 * `data-hint` for the placeholder. Each attribute names an entry of the catalog, such as `start` or `session.join`.
 * @param {ParentNode} root
 * @param {Strings} strings
 */
export function fillIn(root, strings) {
  const entry = (/** @type {string} */ path) => {
    const text = path.split('.').reduce((/** @type {any} */ part, key) => part?.[key], strings);
    if (typeof text !== 'string') throw new Error(`The catalog has no text "${path}".`);
    return text;
  };
  for (const element of root.querySelectorAll('[data-text]')) element.textContent = entry(element.getAttribute('data-text') ?? '');
  for (const element of root.querySelectorAll('[data-label]')) element.setAttribute('aria-label', entry(element.getAttribute('data-label') ?? ''));
  for (const element of root.querySelectorAll('[data-hint]')) element.setAttribute('placeholder', entry(element.getAttribute('data-hint') ?? ''));
}
