/// The reason why an archive was not composed. What is finished stays, so a later attempt continues.
public enum ComposeError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The folder has no event log, or it cannot be read.
    case noArchive(folder: String)
    /// Nothing was recorded, so there is nothing to compose.
    case nothingRecorded
    /// There is no executable file of this name.
    case ffmpegMissing(String)
    /// The version of ffmpeg that was found.
    case ffmpegTooOld(String)
    /// ffmpeg was built without these encoders or decoders.
    case ffmpegIncomplete([String])
    /// A size of the video that x264 or the layout does not allow.
    case badCanvas(String)
    /// Another process composes the same archive.
    case busy
    /// The composed file exists.
    case outputExists(String)
    /// Less than 64 MiB are free, or ffmpeg could not write.
    case diskFull
    /// A file or folder cannot be created or written.
    case cannotWrite(String)
    /// ffmpeg failed, also with the inputs replaced that it cannot decode. With the last line that it printed.
    case failed(part: String, message: String)

    public var description: String {
        switch self {
        case .noArchive(let folder): "\(folder) has no readable event log (events.jsonl), so it is not an archive."
        case .nothingRecorded: "Nothing was recorded in this archive."
        case .ffmpegMissing(let name):
            "The command \(name) was not found. Install ffmpeg, or set its path (compose.ffmpeg, or --ffmpeg)."
        case .ffmpegTooOld(let version):
            "ffmpeg \(version) is too old. Composing needs \(FFmpegInstallation.oldest) or later."
        case .ffmpegIncomplete(let missing):
            "This ffmpeg was built without \(missing.joined(separator: ", ")). Install a build with libx264, aac and libopus, "
                + "such as the package ffmpeg of Debian, Ubuntu or RPM Fusion (Fedora's own ffmpeg-free has no libx264), "
                + "or set the path of one (compose.ffmpeg, or --ffmpeg)."
        case .badCanvas(let size): "The size \(size) is not possible. Use even sides of 64 to 4096 pixels."
        case .busy: "Another process is composing this archive. Wait for it, or stop it."
        case .outputExists(let path): "\(path) exists. Remove it, or replace it with --overwrite."
        case .diskFull: "The disk is full. Free some space and start again: finished parts are kept."
        case .cannotWrite(let path): "\(path) cannot be written. Check the permissions of its folder."
        case .failed(let part, let message): "ffmpeg failed on \(part): \(message)"
        }
    }
}
