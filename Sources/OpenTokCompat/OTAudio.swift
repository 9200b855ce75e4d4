import Foundation

// `AVAudioSession` is available only where UIKit is.
#if canImport(UIKit)
import AVFoundation
#endif

// The media engine captures and plays audio. These types exist only so that applications with a custom audio device
// compile.

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

/// An audio device that the application implements. Its methods are never called: the media engine captures and plays
/// the audio.
public protocol OTAudioDevice: AnyObject {
    /// Sets the bus of the device.
    func setAudioBus(_ audioBus: (any OTAudioBus)?) -> Bool
    /// Returns the format of captured audio.
    func captureFormat() -> OTAudioFormat
    /// Returns the format of played audio.
    func renderFormat() -> OTAudioFormat
    /// Returns whether the device can play.
    func renderingIsAvailable() -> Bool
    /// Prepares playback.
    func initializeRendering() -> Bool
    /// Returns whether playback is prepared.
    func renderingIsInitialized() -> Bool
    /// Starts playback.
    func startRendering() -> Bool
    /// Stops playback.
    func stopRendering() -> Bool
    /// Returns whether the device is playing.
    func isRendering() -> Bool
    /// Returns the delay of playback in milliseconds.
    func estimatedRenderDelay() -> UInt16
    /// Returns whether the device can capture.
    func captureIsAvailable() -> Bool
    /// Prepares capturing.
    func initializeCapture() -> Bool
    /// Returns whether capturing is prepared.
    func captureIsInitialized() -> Bool
    /// Starts filling the bus.
    func startCapture() -> Bool
    /// Stops filling the bus.
    func stopCapture() -> Bool
    /// Returns whether the device is capturing.
    func isCapturing() -> Bool
    /// Returns the delay of capturing in milliseconds.
    func estimatedCaptureDelay() -> UInt16
}

/// Receives CallKit's changes to the audio session. There is no object of this type: the media engine has methods for
/// this.
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

/// Selects the audio device. There is never a device, because the media engine captures and plays the audio.
open class OTAudioDeviceManager: NSObject {
    /// Has no effect: ``currentAudioDevice()`` stays nil.
    public class func setAudioDevice(_ device: (any OTAudioDevice)?) {}
    /// Always returns nil.
    public class func currentAudioDevice() -> (any OTAudioDevice)? { nil }
    /// Always returns nil.
    public class func currentAudioSessionManager() -> (any OTAudioSessionManager)? { nil }
}

/// Audio for an ``OTCustomAudioTransformer``.
open class OTAudioData: NSObject {
    /// The samples, with interleaved channels.
    public var sampleBuffer: UnsafeMutablePointer<Int16>?
    /// Always 16.
    public var bitsPerSample: UInt32 = 16
    /// Samples per second.
    public var sampleRate: UInt32 = 0
    /// 1 for mono, 2 for stereo.
    public var numberOfChannels: UInt32 = 0
    /// The number of samples of each channel.
    public var numberOfSamples: UInt32 = 0
}

/// Transforms audio before it is sent. It is never called, because there is no ``OTAudioTransformer``.
public protocol OTCustomAudioTransformer: AnyObject {
    /// Transforms audio.
    func transform(_ audioData: OTAudioData)
}

/// Transforms audio before it is sent. Audio transformers are not supported: the initializers return nil.
public final class OTAudioTransformer: NSObject {
    /// Returns nil, because transformers are not supported.
    public init?(name: String, properties: String) { return nil }
    /// Returns nil, because transformers are not supported.
    public init?(name: String, transformer: any OTCustomAudioTransformer) { return nil }
}
