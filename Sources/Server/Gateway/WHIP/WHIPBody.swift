import RTC
import Signaling
import Wire

/// Parses the bodies of WHIP and WHEP requests into the types that the hub uses.
enum WHIPBody {
    static let offerType = "application/sdp"
    static let fragmentType = "application/trickle-ice-sdpfrag"

    /// Parses an offer. It must contain audio or video in the direction that `purpose` needs.
    ///
    /// - Throws: `malformed` if the body is not a session description, `description_invalid` if the description is unusable.
    static func offer(_ body: [UInt8], for purpose: ResourcePurpose) throws(WireError) -> ResourceOffer {
        let description: RTC.SessionDescription
        do throws(SDPError) {
            description = try RTC.SessionDescription(parsing: body)
        } catch {
            throw WireError(error)
        }
        guard let credentials = description.iceCredentials else {
            throw WireError(.descriptionInvalid, "The offer has no ICE credentials. Add a=ice-ufrag and a=ice-pwd.")
        }
        let mids = mids(of: description, for: purpose)
        guard !mids.isEmpty else {
            let action = purpose == .publish ? "sends" : "receives"
            throw WireError(
                .descriptionInvalid, "Offer at least one audio or video section that \(action) media and has a mid.")
        }
        let text = description.textAroundCredentials
        return ResourceOffer(
            head: text.head, tail: text.tail,
            credentials: ResourceCredentials(ufrag: credentials.ufrag, pwd: credentials.pwd), mids: mids
        )
    }

    /// Returns the mids of the first usable audio section and the first usable video section. A stream has at most
    /// one of each.
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

    /// Returns the ICE credentials in a trickle ICE fragment, if it has any.
    static func fragment(_ body: [UInt8]) throws(WireError) -> ResourceCredentials? {
        do throws(SDPError) {
            let fragment = try ICEFragment(parsing: body)
            guard let ufrag = fragment.ufrag, let pwd = fragment.pwd else { return nil }
            return ResourceCredentials(ufrag: ufrag, pwd: pwd)
        } catch {
            throw WireError(error)
        }
    }

    /// Returns the part of an answer that a client needs after an ICE restart (RFC 9725 §4.3.3); nil if the answer is
    /// invalid.
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
