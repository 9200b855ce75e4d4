import Signaling
import Wire

/// Reads the bodies of requests for archives.
extension OpenTokRequest {
    private static let quantizations = 15...40

    /// Reads the request to start an archive.
    func archive() throws(WireError) -> (SessionID, ArchiveRequest) {
        let members = try members()
        guard let session = try text("sessionId", members).flatMap({ SessionID($0) }) else {
            throw WireError(.malformed, "Send the \"sessionId\" of the session to record.")
        }
        var archive = ArchiveRequest()
        archive.output = try choice("outputMode", members) ?? .composed
        archive.streamMode = try choice("streamMode", members) ?? .auto
        archive.hasAudio = try flag("hasAudio", members) ?? true
        archive.hasVideo = try flag("hasVideo", members) ?? true
        guard archive.hasAudio || archive.hasVideo else {
            throw WireError(.malformed, "Record audio, video, or both. \"hasAudio\" and \"hasVideo\" are both false.")
        }
        archive.name = try short("name", members, max: ArchiveRequest.maxName)
        archive.tag = try short("multiArchiveTag", members, max: Self.maxTag) ?? ""
        guard try flag("hasTranscription", members) != true else {
            throw WireError(.unsupported, "Transcription is not available on this server.")
        }
        try readPicture(members, &archive)
        return (session, archive)
    }

    /// Reads what applies only to composed archives.
    private func readPicture(_ members: JSONObject, _ archive: inout ArchiveRequest) throws(WireError) {
        archive.resolution = try text("resolution", members)
        archive.maxBitrate = try number("maxBitrate", members, in: Self.bitrates)
        archive.quantization = try number("quantizationParameter", members, in: Self.quantizations)
        archive.layout = try Self.layout(ofStart: members)
        if let resolution = archive.resolution, CompositionResolution(rawValue: resolution) == nil {
            throw WireError(.malformed, "\"resolution\" must be one of \(CompositionResolution.list).")
        }
        guard archive.maxBitrate == nil || archive.quantization == nil else {
            throw WireError(.malformed, "Send \"maxBitrate\" or \"quantizationParameter\", not both.")
        }
        let isPlain =
            archive.resolution == nil && archive.layout == nil && archive.maxBitrate == nil
            && archive.quantization == nil
        guard archive.output == .composed || isPlain else {
            throw WireError(
                .malformed,
                "An individual archive has no \"resolution\", \"layout\", \"maxBitrate\" or \"quantizationParameter\".")
        }
    }
}
