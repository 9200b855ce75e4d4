// The names of OpenTok's documentation, each of which must exist with this name. It is only compiled, never run.

import OT, {
  type Connection, type OpenTok, type OTError, type Publisher, type PublisherEvents, type PublisherOptions, type Session,
  type SessionEvents, type SessionOptions, type Stream, type Style, type Subscriber, type SubscriberEvents, type SubscriberOptions,
} from '../../v2/js/opentok.esm.js';

export const statics: (keyof OpenTok)[] = [
  'initSession', 'initPublisher', 'checkSystemRequirements', 'upgradeSystemRequirements', 'getDevices', 'getUserMedia',
  'getAudioOutputDevices', 'getActiveAudioOutputDevice', 'setAudioOutputDevice', 'checkScreenSharingCapability',
  'registerScreenSharingExtension', 'getSupportedCodecs', 'hasMediaProcessorSupport', 'hasEndToEndEncryptionSupport', 'setProxyUrl',
  'unblockAudio', 'reportIssue', 'setLogLevel', 'log', 'on', 'once', 'off', 'addEventListener', 'removeEventListener',
  'publishers', 'subscribers', 'properties',
];
const emitter = ['on', 'once', 'off', 'addEventListener', 'removeEventListener'] as const;

export const session: (keyof Session)[] = [
  ...emitter, 'sessionId', 'id', 'apiKey', 'connection', 'capabilities', 'isConnected', 'connect', 'disconnect', 'publish', 'unpublish',
  'subscribe', 'unsubscribe', 'signal', 'forceDisconnect', 'forceUnpublish', 'forceMuteStream', 'forceMuteAll', 'disableForceMute',
  'getPublisherForStream', 'getSubscribersForStream', 'setEncryptionSecret', 'setIceConfig',
];
export const sessionOptions: (keyof SessionOptions)[] = ['connectionEventsSuppressed', 'iceConfig', 'ipWhitelist', 'encryptionSecret'];
export const connection: (keyof Connection)[] = ['connectionId', 'id', 'creationTime', 'data'];
export const stream: (keyof Stream)[] = [
  'streamId', 'id', 'connection', 'creationTime', 'name', 'initials', 'hasAudio', 'hasVideo', 'frameRate', 'videoDimensions', 'videoType',
];

const widget = ['insertMode', 'insertDefaultUI', 'showControls', 'width', 'height', 'fitMode', 'style'] as const;
const shown = [
  ...emitter, 'element', 'id', 'stream', 'getImgData', 'getStats', 'getRtcStatsReport', 'getStyle', 'setStyle', 'videoWidth', 'videoHeight',
  'setVideoMediaProcessorConnector', 'setAudioMediaProcessorConnector', 'setPreferredResolution', 'setPreferredFrameRate',
] as const;
export const publisher: (keyof Publisher)[] = [
  ...shown, 'accessAllowed', 'session', 'destroy', 'publishAudio', 'publishVideo', 'publishCaptions', 'cycleVideo', 'setAudioSource',
  'getAudioSource', 'setVideoSource', 'getVideoSource', 'getVideoContentHint', 'setVideoContentHint', 'applyVideoFilter',
  'clearVideoFilter', 'getVideoFilter', 'applyAudioFilter', 'clearAudioFilter', 'getAudioFilter',
];
export const publisherOptions: (keyof PublisherOptions)[] = [
  ...widget, 'audioSource', 'videoSource', 'resolution', 'maxResolution', 'frameRate', 'facingMode', 'publishAudio', 'publishVideo',
  'publishCaptions', 'audioBitrate', 'enableDtx', 'enableStereo', 'disableAudioProcessing', 'echoCancellation', 'noiseSuppression',
  'autoGainControl', 'audioFallback', 'audioFallbackEnabled', 'scalableVideo', 'scalableScreenshare', 'videoContentHint', 'videoFilter',
  'audioFilter', 'name', 'initials', 'mirror',
];
export const subscriber: (keyof Subscriber)[] = [
  ...shown, 'subscribeToAudio', 'subscribeToVideo', 'subscribeToCaptions', 'isSubscribedToCaptions', 'getAudioVolume', 'setAudioVolume',
  'restrictFrameRate', 'isAudioBlocked',
];
export const subscriberOptions: (keyof SubscriberOptions)[] = [
  ...widget, 'audioVolume', 'subscribeToAudio', 'subscribeToVideo', 'preferredFrameRate', 'preferredResolution', 'testNetwork',
];
export const style: (keyof Style)[] = [
  'nameDisplayMode', 'buttonDisplayMode', 'audioLevelDisplayMode', 'videoDisabledDisplayMode', 'audioBlockedDisplayMode',
  'archiveStatusDisplayMode', 'backgroundImageURI',
];

const slow = ['videoDisabled', 'videoEnabled', 'videoDisableWarning', 'videoDisableWarningLifted'] as const;
const media = ['audioLevelUpdated', 'destroyed', 'videoElementCreated', 'videoDimensionsChanged', ...slow] as const;
/** The names of events that have a type of their own, and not only that of every string. */
type Named<Events> = keyof { [Name in keyof Events as string extends Name ? never : Name]: Events[Name] };
export const sessionEvents: Named<SessionEvents>[] = [
  'sessionConnected', 'sessionDisconnected', 'sessionReconnecting', 'sessionReconnected', 'connectionCreated', 'connectionDestroyed',
  'streamCreated', 'streamDestroyed', 'streamPropertyChanged', 'signal', 'signal:chat', 'archiveStarted', 'archiveStopped', 'muteForced',
  'broadcastStarted', 'broadcastStopped',
];
export const publisherEvents: Named<PublisherEvents>[] = [
  ...media, 'accessAllowed', 'accessDenied', 'accessDialogOpened', 'accessDialogClosed', 'streamCreated', 'streamDestroyed',
  'mediaStopped', 'muteForced', 'audioInputDeviceChanged', 'cpuPerformanceChanged',
];
export const subscriberEvents: Named<SubscriberEvents>[] = [
  ...media, 'connected', 'disconnected', 'audioBlocked', 'audioUnblocked', 'captionReceived', 'encryptionSecretMatch',
  'encryptionSecretMismatch',
];

const filter = { type: 'backgroundBlur', blurStrength: 'low' } as const;
OT.on('exception', ({ code, title, message, target }) => console.log(code, title, message, target));
OT.on({ exception: ({ type }) => console.log(type) }).off('exception');
export const promises: Promise<unknown>[] = [
  OT.initSession('key', 'session').disconnect(), OT.initSession('key', 'session').forceUnpublish('stream', (error?: OTError) => console.log(error?.code)),
  OT.unblockAudio(), OT.getDevices(), OT.initPublisher().applyVideoFilter(filter),
];

// @ts-expect-error no such member
export const wrong: (keyof Session)[] = ['forceMute'];
// @ts-expect-error no such event
export const noEvent: Named<PublisherEvents>[] = ['connected'];
