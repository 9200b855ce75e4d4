// Types of OpenTok's SDK for browsers as Confab provides it. docs/opentok.md says what differs from OpenTok's own SDK.

export interface OTError extends Error {
  /** One of OpenTok's names, which begin with `OT_`. */
  name: string;
  /** OpenTok's number. */
  code: number | string;
}

/** Called without an argument on success. */
export type Callback = (error?: OTError) => void;

export interface Event<Type extends string = string, Target = unknown> {
  type: Type;
  target: Target;
  cancelable: boolean;
  isDefaultPrevented(): boolean;
  preventDefault(): void;
}

export interface Emitter<Events extends Record<string, object>> {
  on<Name extends keyof Events & string>(name: Name, handler: (event: Event<Name, this> & Events[Name]) => void, context?: object): this;
  on(name: string, handler: (event: any) => void, context?: object): this;
  on(handlers: Record<string, (event: any) => void>, context?: object): this;
  once<Name extends keyof Events & string>(name: Name, handler: (event: Event<Name, this> & Events[Name]) => void, context?: object): this;
  once(name: string, handler: (event: any) => void, context?: object): this;
  once(handlers: Record<string, (event: any) => void>, context?: object): this;
  off(name?: string, handler?: (event: any) => void, context?: object): this;
  off(handlers: Record<string, (event: any) => void>, context?: object): this;
  /** @deprecated Use `on`. */
  addEventListener(name: string, handler: (event: any) => void, context?: object): void;
  /** @deprecated Use `off`. */
  removeEventListener(name: string, handler: (event: any) => void, context?: object): void;
}

export interface Connection {
  connectionId: string;
  id: string;
  /** Milliseconds since 1970. */
  creationTime: number;
  data: string;
}

export interface Dimensions {
  width: number;
  height: number;
}

export type VideoType = 'camera' | 'screen' | 'custom';

export interface Stream {
  streamId: string;
  id: string;
  connection: Connection;
  /** Milliseconds since 1970. */
  creationTime: number;
  name: string;
  /** Empty if the publisher gave none. */
  initials: string;
  hasAudio: boolean;
  hasVideo: boolean;
  /** The frame rate of the publisher's options; undefined if it has none. */
  frameRate: number | undefined;
  videoDimensions: Dimensions;
  videoType: VideoType | string | undefined;
}

export interface ConnectionEvent { connection: Connection }
export interface ReasonEvent { reason: string }
export interface StreamEvent { stream: Stream }
export interface AudioLevelEvent {
  /** 0 to 1 */
  audioLevel: number;
}
export interface VideoElementEvent { element: HTMLVideoElement }
export interface DimensionsEvent { oldValue?: Dimensions; newValue: Dimensions }
export interface ArchiveEvent {
  id: string;
  name: string;
  /** In `archiveStarted`: whether only members who called `acceptRecording(true)` are recorded. OpenTok does not ask. */
  consent?: boolean;
}
/** Of the events `broadcastStarted` and `broadcastStopped`. Only in Confab. */
export interface BroadcastEvent {
  id: string;
  /** In `broadcastStarted`: whether only members who called `acceptBroadcast(true)` are broadcast. */
  consent?: boolean;
}
export interface SignalEvent {
  data: string | undefined;
  /** Null if the server sent the signal. */
  from: Connection | null;
}

export interface SessionEvents extends Record<string, object> {
  sessionConnected: {};
  sessionDisconnected: ReasonEvent;
  sessionReconnecting: {};
  sessionReconnected: {};
  connectionCreated: ConnectionEvent;
  connectionDestroyed: ConnectionEvent & ReasonEvent;
  streamCreated: StreamEvent;
  streamDestroyed: StreamEvent & ReasonEvent;
  streamPropertyChanged: StreamEvent & { changedProperty: 'hasAudio' | 'hasVideo' | 'videoDimensions'; oldValue: any; newValue: any };
  signal: SignalEvent;
  /** The session is being recorded, or will be in a moment. Also emitted after connecting to a session that is recorded. */
  archiveStarted: ArchiveEvent;
  archiveStopped: ArchiveEvent;
  broadcastStarted: BroadcastEvent;
  broadcastStopped: BroadcastEvent;
  muteForced: { active: boolean };
  [signal: `signal:${string}`]: SignalEvent;
}

export interface Capabilities {
  publish: 0 | 1;
  subscribe: 0 | 1;
  forceDisconnect: 0 | 1;
  forceUnpublish: 0 | 1;
  forceMute: 0 | 1;
}

export interface Signal {
  type?: string;
  data?: string;
  to?: Connection | string;
  /** False: fail if the session is reconnecting, instead of sending the signal afterward. */
  retryAfterReconnect?: boolean;
}

export interface IceConfig {
  includeServers?: 'all' | 'custom';
  transportPolicy?: 'all' | 'relay';
  customServers?: RTCIceServer[];
}

export interface SessionOptions {
  connectionEventsSuppressed?: boolean;
  iceConfig?: IceConfig;
  /** No effect. */
  ipWhitelist?: boolean;
  /** Connecting then fails with `OT_NOT_SUPPORTED`. */
  encryptionSecret?: string;
}

export interface Session extends Emitter<SessionEvents> {
  readonly sessionId: string;
  readonly id: string;
  readonly apiKey: string;
  /** Null while the session is not connected. */
  readonly connection: Connection | null;
  /** Undefined before the session has connected. */
  readonly capabilities: Capabilities | Record<string, number> | undefined;
  isConnected(): boolean;
  connect(token: string, callback?: Callback): this;
  disconnect(): Promise<void>;
  publish(publisher: Publisher, callback?: Callback): Publisher;
  publish(target?: Element | string | null, properties?: PublisherOptions, callback?: Callback): Publisher;
  unpublish(publisher: Publisher): void;
  subscribe(stream: Stream, target?: Element | string | null, properties?: SubscriberOptions, callback?: Callback): Subscriber;
  subscribe(stream: Stream, target: Element | string | null, callback: Callback): Subscriber;
  unsubscribe(subscriber: Subscriber): void;
  getPublisherForStream(stream: Stream | string): Publisher | undefined;
  getSubscribersForStream(stream: Stream | string): Subscriber[];
  signal(signal: Signal, callback?: Callback): void;
  forceDisconnect(connection: Connection | string, callback?: Callback): Promise<void>;
  forceUnpublish(stream: Stream | string, callback?: Callback): Promise<void>;
  forceMuteStream(stream: Stream | string): Promise<void>;
  forceMuteAll(excludedStreams?: (Stream | string)[]): Promise<void>;
  disableForceMute(): Promise<void>;
  /** Whether the session is being recorded. Only in Confab. */
  readonly isRecorded: boolean;
  /** Whether a recording waits for the answer of this person. Only in Confab. */
  readonly asksConsent: boolean;
  /** Accepts or refuses to be recorded, if `archiveStarted` asks for consent. Only in Confab. */
  acceptRecording(accept: boolean): Promise<void>;
  /** Whether the session is being broadcast live. Only in Confab. */
  readonly isBroadcast: boolean;
  /** Whether a broadcast waits for the answer of this person. Only in Confab. */
  readonly asksBroadcastConsent: boolean;
  /** Accepts or refuses to be broadcast, if `broadcastStarted` asks for consent. Only in Confab. */
  acceptBroadcast(accept: boolean): Promise<void>;
  /** Rejects with `OT_NOT_SUPPORTED`. After that, connecting, publishing and subscribing fail with it too. */
  setEncryptionSecret(secret: string): Promise<void>;
  /** Rejects while the session is connected. */
  setIceConfig(config: IceConfig): Promise<void>;
}

export type DisplayMode = 'auto' | 'on' | 'off';

export interface Style {
  nameDisplayMode?: DisplayMode;
  buttonDisplayMode?: DisplayMode;
  audioLevelDisplayMode?: DisplayMode;
  videoDisabledDisplayMode?: DisplayMode;
  audioBlockedDisplayMode?: DisplayMode;
  archiveStatusDisplayMode?: DisplayMode;
  /** The address of an image that is shown without video. */
  backgroundImageURI?: string | null;
}

export interface WidgetOptions {
  insertMode?: 'replace' | 'after' | 'before' | 'append';
  insertDefaultUI?: boolean;
  showControls?: boolean;
  /** Pixels, or a CSS length. The default is 264. */
  width?: number | string;
  /** Pixels, or a CSS length. The default is 198. */
  height?: number | string;
  fitMode?: 'cover' | 'contain';
  style?: Style;
}

export type VideoFilter = { type: 'backgroundBlur'; blurStrength?: 'low' | 'high' } | { type: 'backgroundReplacement'; backgroundImgUrl: string };
export type AudioFilter = { type: 'advancedNoiseSuppression' };

export interface MediaProcessorConnector {
  setTrack(track: MediaStreamTrack): Promise<MediaStreamTrack>;
  destroy?(): Promise<void> | void;
}

export type VideoContentHint = '' | 'motion' | 'detail' | 'text';

export interface SourceOptions {
  audioSource?: string | null | boolean | MediaStreamTrack;
  videoSource?: string | null | boolean | MediaStreamTrack;
  resolution?: '1920x1080' | '1280x960' | '1280x720' | '640x480' | '640x360' | '320x240' | '320x180' | string;
  maxResolution?: Dimensions;
  frameRate?: 30 | 15 | 7 | 1 | number;
  facingMode?: 'user' | 'environment' | 'left' | 'right' | string;
  enableStereo?: boolean;
  disableAudioProcessing?: boolean;
  echoCancellation?: boolean;
  noiseSuppression?: boolean;
  autoGainControl?: boolean;
}

export interface PublisherOptions extends SourceOptions, WidgetOptions {
  publishAudio?: boolean;
  publishVideo?: boolean;
  /** No effect. */
  publishCaptions?: boolean;
  /** 6000 to 510000 bit/s */
  audioBitrate?: number;
  enableDtx?: boolean;
  audioFallback?: { publisher?: boolean; subscriber?: boolean };
  /** No effect. */
  audioFallbackEnabled?: boolean;
  scalableVideo?: boolean;
  scalableScreenshare?: boolean;
  videoContentHint?: VideoContentHint;
  videoFilter?: VideoFilter;
  audioFilter?: AudioFilter;
  name?: string;
  /** Shown while the video is off. Others see the first eight characters. */
  initials?: string;
  mirror?: boolean;
}

export interface PublisherEvents extends Record<string, object> {
  accessAllowed: {};
  accessDenied: { message: string };
  accessDialogOpened: {};
  accessDialogClosed: {};
  audioLevelUpdated: AudioLevelEvent;
  streamCreated: StreamEvent;
  streamDestroyed: StreamEvent & ReasonEvent;
  mediaStopped: { track: MediaStreamTrack };
  destroyed: {};
  videoElementCreated: VideoElementEvent;
  videoDimensionsChanged: DimensionsEvent;
  videoDisabled: ReasonEvent;
  videoEnabled: ReasonEvent;
  videoDisableWarning: {};
  videoDisableWarningLifted: {};
  muteForced: {};
  audioInputDeviceChanged: { device: Device };
  /** Never emitted. */
  cpuPerformanceChanged: object;
}

export interface SentStats { bytesSent: number; packetsLost: number; packetsSent: number }
export interface PublisherStats {
  connectionId?: string;
  subscriberId?: string;
  stats: { audio: SentStats; video: SentStats & { frameRate: number }; timestamp: number };
}

export interface Publisher extends Emitter<PublisherEvents> {
  readonly accessAllowed: boolean | undefined;
  /** Undefined if `insertDefaultUI` is false. */
  readonly element: HTMLElement | undefined;
  readonly id: string;
  /** Null while not published. */
  readonly stream: Stream | null;
  /** Null while not published. */
  readonly session: Session | null;
  destroy(): this;
  publishAudio(on: boolean): this;
  publishVideo(on: boolean): this;
  publishCaptions(on: boolean): this;
  getImgData(): string | null;
  getStats(callback: (error: Error | null, stats?: PublisherStats[]) => void): void;
  getRtcStatsReport(): Promise<{ connectionId?: string; rtcStatsReport: RTCStatsReport }[]>;
  getStyle(): Style;
  getStyle(name: string): any;
  setStyle(style: Style): this;
  setStyle(name: string, value: unknown): this;
  cycleVideo(): Promise<{ deviceId: string }>;
  setAudioSource(source: string | boolean | null | undefined | MediaStreamTrack): Promise<void>;
  getAudioSource(): MediaStreamTrack | null;
  setVideoSource(source: string | boolean | null | undefined | MediaStreamTrack): Promise<void>;
  getVideoSource(): { deviceId: string | null; type: VideoType | null; track: MediaStreamTrack | null };
  getVideoContentHint(): VideoContentHint;
  setVideoContentHint(hint: VideoContentHint): void;
  applyVideoFilter(filter: VideoFilter): Promise<void>;
  clearVideoFilter(): Promise<void>;
  getVideoFilter(): object | null;
  applyAudioFilter(filter: AudioFilter): Promise<void>;
  clearAudioFilter(): Promise<void>;
  getAudioFilter(): object | null;
  setVideoMediaProcessorConnector(connector: MediaProcessorConnector | null): Promise<void>;
  setAudioMediaProcessorConnector(connector: MediaProcessorConnector | null): Promise<void>;
  setPreferredResolution(resolution: Dimensions): Promise<void>;
  setPreferredFrameRate(frameRate: number): Promise<void>;
  videoWidth(): number | undefined;
  videoHeight(): number | undefined;
}

export interface SubscriberOptions extends WidgetOptions {
  /** 0 to 100 */
  audioVolume?: number;
  subscribeToAudio?: boolean;
  subscribeToVideo?: boolean;
  preferredFrameRate?: number;
  preferredResolution?: Dimensions | 'auto' | null;
  /** No effect: in routed sessions, your own stream can always be subscribed to. */
  testNetwork?: boolean;
}

export interface SubscriberEvents extends Record<string, object> {
  connected: {};
  disconnected: {};
  destroyed: ReasonEvent;
  audioLevelUpdated: AudioLevelEvent;
  audioBlocked: {};
  audioUnblocked: {};
  videoEnabled: ReasonEvent;
  videoDisabled: ReasonEvent;
  videoDisableWarning: {};
  videoDisableWarningLifted: {};
  videoDimensionsChanged: DimensionsEvent;
  videoElementCreated: VideoElementEvent;
  /** Never emitted, because the server has no captions. */
  captionReceived: { streamId: string; caption: string; isFinal: boolean };
  /** Never emitted, because there is no end-to-end encryption. */
  encryptionSecretMatch: {};
  /** Never emitted, because there is no end-to-end encryption. */
  encryptionSecretMismatch: {};
}

export interface ReceivedStats { bytesReceived: number; packetsLost: number; packetsReceived: number }
export interface SubscriberStats { audio: ReceivedStats; video: ReceivedStats & { frameRate: number }; timestamp: number }

export interface Subscriber extends Emitter<SubscriberEvents> {
  /** Undefined if `insertDefaultUI` is false. */
  readonly element: HTMLElement | undefined;
  readonly id: string;
  readonly stream: Stream;
  subscribeToAudio(on: boolean): this;
  subscribeToVideo(on: boolean): this;
  /** Rejects with `OT_NOT_SUPPORTED` for true. */
  subscribeToCaptions(on: boolean): Promise<void>;
  isSubscribedToCaptions(): boolean;
  getAudioVolume(): number;
  setAudioVolume(volume: number): this;
  setPreferredResolution(resolution: Dimensions | 'auto' | null): this;
  setPreferredFrameRate(frameRate: number | null): this;
  restrictFrameRate(on: boolean): this;
  isAudioBlocked(): boolean;
  getStats(callback: (error: Error | null, stats?: SubscriberStats) => void): void;
  getRtcStatsReport(): Promise<RTCStatsReport>;
  getImgData(): string | null;
  getStyle(): Style;
  getStyle(name: string): any;
  setStyle(style: Style): this;
  setStyle(name: string, value: unknown): this;
  /** Rejects with `OT_NOT_SUPPORTED`, unless it is null. */
  setVideoMediaProcessorConnector(connector: MediaProcessorConnector | null): Promise<void>;
  /** Rejects with `OT_NOT_SUPPORTED`, unless it is null. */
  setAudioMediaProcessorConnector(connector: MediaProcessorConnector | null): Promise<void>;
  videoWidth(): number | undefined;
  videoHeight(): number | undefined;
}

export interface Device { kind: 'audioInput' | 'videoInput'; deviceId: string; label: string }
export interface OutputDevice { deviceId: string; label: string | null }
export interface ScreenSharingCapability {
  supported: boolean;
  supportedSources: Record<string, boolean>;
  extensionRequired?: string;
  extensionRegistered?: boolean;
  extensionInstalled?: boolean;
}

export interface Registry<Member> {
  readonly length: number;
  find(predicate?: (member: any) => boolean): Member | undefined;
  forEach(visit: (member: any) => void): void;
}

export interface ExceptionEvent { type: 'exception'; code: number | string; title: string; message: string; target: unknown }

export interface OpenTok {
  properties: {
    version: string;
    /** The address of the server; default: the one that this script was loaded from. Set it before `initSession`. */
    apiURL: string;
    loggingURL: string;
  };
  readonly publishers: Registry<Publisher>;
  readonly subscribers: Registry<Subscriber>;
  readonly NONE: number;
  readonly ERROR: number;
  readonly WARN: number;
  readonly INFO: number;
  readonly LOG: number;
  readonly DEBUG: number;
  readonly HAS_REQUIREMENTS: number;
  readonly NOT_HAS_REQUIREMENTS: number;
  initSession(apiKey: string | number, sessionId: string, options?: SessionOptions): Session;
  initPublisher(target?: Element | string | null, properties?: PublisherOptions, callback?: Callback): Publisher;
  initPublisher(target: Element | string | null, callback: Callback): Publisher;
  initPublisher(properties: PublisherOptions, callback?: Callback): Publisher;
  checkSystemRequirements(): number;
  upgradeSystemRequirements(): void;
  getDevices(callback?: (error: OTError | null, devices: Device[]) => void): Promise<Device[]>;
  getUserMedia(options?: SourceOptions): Promise<MediaStream>;
  getAudioOutputDevices(): Promise<OutputDevice[]>;
  getActiveAudioOutputDevice(): Promise<OutputDevice>;
  setAudioOutputDevice(deviceId: string): Promise<void>;
  checkScreenSharingCapability(callback: (response: ScreenSharingCapability) => void): void;
  registerScreenSharingExtension(kind?: string, id?: string, version?: number): void;
  getSupportedCodecs(): Promise<{ videoEncoders: string[]; videoDecoders: string[] }>;
  hasMediaProcessorSupport(): boolean;
  hasEndToEndEncryptionSupport(): boolean;
  setProxyUrl(url: string): void;
  unblockAudio(): Promise<void>;
  reportIssue(callback?: (error: OTError | any, id?: string) => void): void;
  setLogLevel(level: number): void;
  log(...words: unknown[]): void;
  on(name: 'exception', handler: (event: ExceptionEvent) => void, context?: object): this;
  on(handlers: { exception: (event: ExceptionEvent) => void }, context?: object): this;
  once(name: 'exception', handler: (event: ExceptionEvent) => void, context?: object): this;
  once(handlers: { exception: (event: ExceptionEvent) => void }, context?: object): this;
  off(name?: string, handler?: (event: ExceptionEvent) => void, context?: object): this;
  off(handlers: { exception: (event: ExceptionEvent) => void }, context?: object): this;
  /** @deprecated Use `on`. */
  addEventListener(name: 'exception', handler: (event: ExceptionEvent) => void, context?: object): void;
  /** @deprecated Use `off`. */
  removeEventListener(name: 'exception', handler?: (event: ExceptionEvent) => void, context?: object): void;
}

declare const OT: OpenTok;
export default OT;

export const {
  checkScreenSharingCapability, checkSystemRequirements, getActiveAudioOutputDevice, getAudioOutputDevices, getDevices, getSupportedCodecs,
  getUserMedia, hasEndToEndEncryptionSupport, hasMediaProcessorSupport, initPublisher, initSession, log, off, on, once, properties, publishers,
  registerScreenSharingExtension, reportIssue, setAudioOutputDevice, setLogLevel, setProxyUrl, subscribers, unblockAudio,
  upgradeSystemRequirements,
}: OpenTok;
