import RTC
import Signaling
import Wire

/// Reads the bodies of WHIP's and WHEP's requests: what the rules need to know of them, in their own words.
enum WHIPBody {
    static let offerType = "application/sdp"
    static let fragmentType = "application/trickle-ice-sdpfrag"

    /// An offer that has something for us, by whichever way the resource goes.
    ///
    /// Names in it are only names: nothing is believed but which sections there are.
    /// - Throws: `malformed` for what is no description, `description_invalid` for one that is of no use.
    static func offer(_ body: [UInt8], for purpose: ResourcePurpose) throws(WireError) -> ResourceOffer {
        let description: RTC.SessionDescription
        do throws(SDPError) {
            description = try RTC.SessionDescription(parsing: body)
        } catch {
            throw WireError(error)
        }
        guard let credentials = description.iceCredentials else {
            throw WireError(.descriptionInvalid, "The offer has no a=ice-ufrag and a=ice-pwd.")
        }
        let mids = mids(of: description, for: purpose)
        guard !mids.isEmpty else {
            let deed = purpose == .publish ? "sends" : "receives"
            throw WireError(.descriptionInvalid, "The offer has no audio or video section that \(deed) and has a mid.")
        }
        let text = description.textAroundCredentials
        return ResourceOffer(
            head: text.head, tail: text.tail,
            credentials: ResourceCredentials(ufrag: credentials.ufrag, pwd: credentials.pwd), mids: mids
        )
    }

    /// Of the first audio and the first video section: one stream has one of each.
    private static func mids(of description: RTC.SessionDescription, for purpose: ResourcePurpose) -> MediaMids {
        func first(_ kind: MediaKind) -> String? {
            description.sections.first { section in
                let direction = section.direction ?? description.direction ?? .sendrecv
                let isUsed = purpose == .publish ? direction.sends : direction.receives
                return section.kind == kind && section.isActive && isUsed && section.mid != nil
            }?.mid
        }
        return MediaMids(audio: first(.audio), video: first(.video))
    }

    /// - Returns: the credentials of the ICE session that a fragment is of, if it says so.
    static func fragment(_ body: [UInt8]) throws(WireError) -> ResourceCredentials? {
        do throws(SDPError) {
            let fragment = try ICEFragment(parsing: body)
            guard let ufrag = fragment.ufrag, let pwd = fragment.pwd else { return nil }
            return ResourceCredentials(ufrag: ufrag, pwd: pwd)
        } catch {
            throw WireError(error)
        }
    }

    /// What a client needs of the answer to an ICE restart (RFC 9725 §4.3.3).
    static func fragment(ofAnswer sdp: String) -> String? {
        (try? RTC.SessionDescription(parsing: sdp))?.iceFragment
    }
}

extension WireError {
    fileprivate init(_ error: SDPError) {
        switch error.code {
        case .tooLarge: self.init(.messageTooLarge, "\(error)")
        case .malformed, .tooMany, .duplicate, .missing: self.init(.malformed, "\(error)")
        case .unsupported: self.init(.descriptionInvalid, "\(error)")
        }
    }
}
