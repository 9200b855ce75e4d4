import Dispatch
import Foundation

// What OpenTok's sessions have and Confab's have not. None of it fails silently.
extension OTSession {
    static let noEncryption =
        "There is no end-to-end encryption. Do not call setEncryptionSecret if this application may go without."

    /// The queue of the delegates: always the main one. Setting another has no effect.
    public var apiQueue: DispatchQueue {
        get { .main }
        set { _ = newValue }
    }

    /// Always reports 6004, because there is no end-to-end encryption. Afterwards the session neither publishes (6001) nor
    /// subscribes (6002), so that nothing goes out unencrypted that was meant to be encrypted.
    public func setEncryptionSecret(_ secret: String, error: UnsafeMutablePointer<OTError?>?) {
        wantsEncryption = true
        error?.pointee = OTError(OTSessionErrorCode.sessionInvalidEncryptionSecret, Self.noEncryption)
    }

    /// Sets `issueId` to nil: nobody takes reports. Ask for the server's log instead.
    public func reportIssue(_ issueId: UnsafeMutablePointer<NSString?>?) { issueId?.pointee = nil }
}
