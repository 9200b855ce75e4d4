import NIOHTTP1
import Signaling
import Wire

extension EndpointResponse {
    /// - Parameter location: The URL of the resource that the request created or addressed.
    init(_ reply: ResourceReply, location: String) {
        switch reply {
        case .created(let sdp, let tag, let ice):
            self.init(status: 201, contentType: WHIPBody.offerType, body: Array(sdp.utf8))
            headers.add(name: "Location", value: location)
            headers.add(name: "ETag", value: "\"\(tag)\"")
            for link in ice.servers.flatMap(\.links) { headers.add(name: "Link", value: link) }
        case .accepted: self.init(status: 204)
        case .restarted(_, let sdp, let tag):
            guard let fragment = WHIPBody.fragment(ofAnswer: sdp) else {
                self.init(WireError(.internalError, "The server produced an invalid answer. Create a new resource."))
                return
            }
            self.init(status: 200, contentType: WHIPBody.fragmentType, body: Array(fragment.utf8))
            headers.add(name: "ETag", value: "\"\(tag)\"")
        case .deleted: self.init(status: 200)
        case .refused(_, let error): self.init(error)
        }
    }
}

extension ICEServer {
    /// `Link` header values, one per URL (RFC 9725 §4.6).
    fileprivate var links: [String] {
        (urls ?? []).map { url in
            var link = "<\(url)>; rel=\"ice-server\""
            if let username, let credential {
                link += "; username=\(Self.quoted(username)); credential=\(Self.quoted(credential))"
                link += "; credential-type=\"password\""
            }
            return link
        }
    }

    /// Returns a quoted string (RFC 9110 §5.6.4). A TURN password may contain any character.
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for character in text.unicodeScalars where character.value >= 0x20 && character.value != 0x7F {
            if character == "\"" || character == "\\" { quoted += "\\" }
            quoted.unicodeScalars.append(character)
        }
        return quoted + "\""
    }
}
