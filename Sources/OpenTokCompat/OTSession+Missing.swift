import Dispatch
import Foundation

// Features of OpenTok's sessions that Confab does not support. They exist so that code that uses them compiles.
extension OTSession {
    static let noEncryption =
        "End-to-end encryption is not supported. Do not call setEncryptionSecret if this application can do without."

    /// The queue on which delegate methods are called. Always the main queue; setting another has no effect.
    public var apiQueue: DispatchQueue {
        get { .main }
        set { _ = newValue }
    }

    /// Always reports error 6004, because end-to-end encryption is not supported. Afterwards the session neither
    /// publishes (error 6001) nor subscribes (error 6002), so that media that was meant to be encrypted is not sent
    /// unencrypted.
    public func setEncryptionSecret(_ secret: String, error: UnsafeMutablePointer<OTError?>?) {
        wantsEncryption = true
        error?.pointee = OTError(OTSessionErrorCode.sessionInvalidEncryptionSecret, Self.noEncryption)
    }

    /// Sets `issueId` to nil, because issue reports are not supported. Use the server's log instead.
    public func reportIssue(_ issueId: UnsafeMutablePointer<NSString?>?) { issueId?.pointee = nil }
}
