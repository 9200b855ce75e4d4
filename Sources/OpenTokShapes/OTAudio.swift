import Foundation

// The audio session exists where UIKit does.
#if canImport(UIKit)
import AVFoundation
#endif

// The media engine captures and plays audio. These names let code with an audio device of its own compile.

/// The format of audio: signed 16-bit samples.
open class OTAudioFormat: NSObject {
    /// Samples per second.
    public var sampleRate: UInt16 = 0
    /// The number of channels.
    public var numChannels: UInt8 = 0
}

/// Carries audio between the network and an ``OTAudioDevice``.
public protocol OTAudioBus: AnyObject {
    /// Sends captured samples.
    func writeCaptureData(_ data: UnsafeMutableRawPointer, numberOfSamples count: UInt32)
    /// Reads samples to play.
    func readRenderData(_ data: UnsafeMutableRawPointer, numberOfSamples count: UInt32) -> UInt32
}

/// An audio device that the application writes. None of its methods is ever called: the media engine owns the audio.
public protocol OTAudioDevice: AnyObject {
    /// Gives the device its bus.
    func setAudioBus(_ audioBus: (any OTAudioBus)?) -> Bool
    /// The format of captured audio.
    func captureFormat() -> OTAudioFormat
    /// The format of played audio.
    func renderFormat() -> OTAudioFormat
    /// Whether the device can play.
    func renderingIsAvailable() -> Bool
    /// Prepares playing.
    func initializeRendering() -> Bool
    /// Whether playing is prepared.
    func renderingIsInitialized() -> Bool
    /// Starts to play.
    func startRendering() -> Bool
    /// Stops to play.
    func stopRendering() -> Bool
    /// Whether the device plays.
    func isRendering() -> Bool
    /// The delay of playing in milliseconds.
    func estimatedRenderDelay() -> UInt16
    /// Whether the device can capture.
    func captureIsAvailable() -> Bool
    /// Prepares capturing.
    func initializeCapture() -> Bool
    /// Whether capturing is prepared.
    func captureIsInitialized() -> Bool
    /// Begins to fill the bus.
    func startCapture() -> Bool
    /// Fills the bus no longer.
    func stopCapture() -> Bool
    /// Whether the device captures.
    func isCapturing() -> Bool
    /// The delay of capturing in milliseconds.
    func estimatedCaptureDelay() -> UInt16
}

/// Hears what CallKit does to the audio session. There is none: the media engine has methods for it.
public protocol OTAudioSessionManager: AnyObject {
    /// Leaves the audio session to CallKit.
    func enableCallingServicesMode()
    #if canImport(UIKit)
    /// Configures the audio session before CallKit activates it.
    func preconfigureAudioSessionForCall(withMode mode: AVAudioSession.Mode?)
    /// CallKit activated the audio session.
    func audioSessionDidActivate(_ session: AVAudioSession)
    /// CallKit deactivated the audio session.
    func audioSessionDidDeactivate(_ session: AVAudioSession)
    #endif
}

/// Chooses the audio device. The media engine owns the audio, so that there is never another device.
open class OTAudioDeviceManager: NSObject {
    /// Has no effect: ``currentAudioDevice()`` stays nil.
    public class func setAudioDevice(_ device: (any OTAudioDevice)?) {}
    /// Always nil.
    public class func currentAudioDevice() -> (any OTAudioDevice)? { nil }
    /// Always nil.
    public class func currentAudioSessionManager() -> (any OTAudioSessionManager)? { nil }
}

/// Audio for an ``OTCustomAudioTransformer``.
open class OTAudioData: NSObject {
    /// Where the audio is, channels interleaved.
    public var sampleBuffer: UnsafeMutablePointer<Int16>?
    /// Always 16.
    public var bitsPerSample: UInt32 = 16
    /// Samples per second.
    public var sampleRate: UInt32 = 0
    /// 1 for mono, 2 for stereo.
    public var numberOfChannels: UInt32 = 0
    /// How many samples each channel has.
    public var numberOfSamples: UInt32 = 0
}

/// Changes audio before it is sent. It is never called, because there is no ``OTAudioTransformer``.
public protocol OTCustomAudioTransformer: AnyObject {
    /// Changes audio.
    func transform(_ audioData: OTAudioData)
}

/// A change of audio before it is sent. There are none: creating one gives nil.
public final class OTAudioTransformer: NSObject {
    /// Gives nil: there are no transformers.
    public init?(name: String, properties: String) { return nil }
    /// Gives nil: there are no transformers.
    public init?(name: String, transformer: any OTCustomAudioTransformer) { return nil }
}
