import AppModel
import Confab
import ConfabUI
import Foundation
import SwiftUI

/// The room screen: before joining, inside, and afterwards.
struct RoomView: View {
    @Bindable var model: RoomModel

    var body: some View {
        if model.showsRoom {
            RoomStage(model: model)
        } else {
            Form {
                Section {
                    ModelText(model.statusText)
                    ModelText(model.noticeText)
                    if model.offersSettings { SettingsButton() }
                    if model.isPreviewing {
                        VideoView(model.shownOwn, mirrored: model.camera.isMirrored)
                            .aspectRatio(4 / 3, contentMode: .fit)
                            .accessibilityElement()
                            .accessibilityLabel(model.previewText)
                    }
                    TextField("Room", text: $model.roomName).textInputAutocapitalization(.never)
                    TextField("Your name", text: $model.yourName)
                    if model.needsPassword { SecureField("Password", text: $model.password) }
                }
                HStack {
                    MuteButton(isOn: model.isMuted) { model.toggleMute() }
                    CameraOffButton(isOn: model.isCameraOff) { model.toggleCamera() }
                }
                .buttonStyle(.bordered)
                if model.canPreview { Button("Check camera") { model.preview() } }
                Button(model.joinText) { model.join() }.disabled(!model.canJoin)
                if model.offersCancel { Button("Cancel", role: .cancel) { model.leave() } }
            }
            .navigationTitle("Room")
            .onDisappear { model.closePreview() }
        }
    }
}

/// The inside of a room: the tiles, and the buttons below them.
private struct RoomStage: View {
    @Bindable var model: RoomModel

    var body: some View {
        VStack(spacing: 0) {
            ScrollingTexts {
                ModelText(model.statusText).font(.footnote)
                ModelText(model.noticeText).font(.footnote)
                if model.offersSettings { SettingsButton().buttonStyle(.bordered) }
                RecordingMark(text: model.captureText)
                if let question = model.consentQuestion { ConsentRow(model: model, question: question) }
                ForEach(model.waitingPeople) { WaitingRow(model: model, person: $0) }
            }
            RoomPictures(model: model).background {
                PictureInPicture(window: model.smallWindow) { model.smallWindow(isShown: $0) }
            }
            HStack {
                ScrollView(.horizontal) { HStack { buttons } }
                Button("Leave", role: .destructive) { model.leave() }.buttonStyle(.borderedProminent)
            }
            .padding()
        }
        .confirmationDialog(model.questionText, isPresented: $model.asks, titleVisibility: .visible) {
            if let question = model.question {
                Button(question.action.text, role: .destructive) { model.confirm(question) }
            }
            Button("Cancel", role: .cancel) {}
        }
        .statusBarHidden(model.hidesBars)
        .persistentSystemOverlays(model.hidesBars ? .hidden : .automatic)
        .sheet(isPresented: $model.showsChat) {
            NavigationStack {
                ChatView(
                    lines: model.chat, draft: $model.draft, canSend: model.canSend,
                    sendAgain: { model.sendAgain($0) }, download: { model.download($0) }
                ) { model.send() }
                .navigationTitle("Chat")
                .toolbar {
                    ToolbarItem(placement: .cancellationAction) { Button("Close") { model.showsChat = false } }
                }
            }
        }
    }

    @ViewBuilder private var buttons: some View {
        MuteButton(isOn: model.isMuted) { model.toggleMute() }
        CameraOffButton(isOn: model.isCameraOff) { model.toggleCamera() }
        SwitchCameraButton { model.switchCamera() }.disabled(!model.canSwitchCamera)
        ShareScreenButton(isOn: model.isSharingScreen) { model.toggleScreen() }
        Button("Raise hand", systemImage: model.hasHandUp ? "hand.raised.fill" : "hand.raised") { model.toggleHand() }
            .round(isOn: model.hasHandUp)
        Menu {
            ForEach(RoomModel.reactions, id: \.self) { reaction in
                Button(action: { model.react(reaction) }) { Text(reaction) }
            }
        } label: {
            Label("React", systemImage: "face.smiling")
        }
        .round()
        Button("Chat", systemImage: "bubble.left.fill") { model.showsChat = true }.round()
        if let link = model.link { ShareLink(item: link) }
        Picker("Layout", selection: $model.layout) {
            ForEach(RoomLayout.allCases, id: \.self) { Text($0.text).tag($0) }
        }
    }
}

/// Says that the room is being recorded or broadcast live, with a red mark. Hidden if the text is empty.
private struct RecordingMark: View {
    let text: String

    var body: some View {
        if !text.isEmpty {
            HStack {
                Image(systemName: "record.circle.fill").foregroundStyle(.red).accessibilityHidden(true)
                ModelText(text)
            }
            .font(.footnote)
            .accessibilityElement(children: .combine)
        }
    }
}

/// The question whether the user may be part of a recording or a broadcast.
private struct ConsentRow: View {
    let model: RoomModel
    let question: RoomConsent

    var body: some View {
        VStack {
            ModelText(question.text)
            HStack {
                Button(action: { model.answer(question, accepts: true) }) { Text(question.acceptText) }
                Button(action: { model.answer(question, accepts: false) }) { Text(RoomConsent.refuseText) }
            }
            .buttonStyle(.bordered)
        }
        .font(.footnote)
        .accessibilityElement(children: .contain)
    }
}

/// A person waiting to be admitted.
private struct WaitingRow: View {
    let model: RoomModel
    let person: RoomKnock

    var body: some View {
        ViewThatFits {
            HStack { content }
            VStack { content }
        }
        .font(.footnote)
        .buttonStyle(.bordered)
        .accessibilityElement(children: .contain)
    }

    @ViewBuilder private var content: some View {
        Text(RoomModel.text(of: person))
        Button("Admit") { model.admit(person.id) }
        Button("Deny", role: .destructive) { model.deny(person.id) }
    }
}

/// The tiles, at the positions chosen by the model.
private struct RoomPictures: View {
    let model: RoomModel
    @Environment(\.accessibilityReduceMotion) private var reduceMotion

    var body: some View {
        GeometryReader { geometry in
            let placed = model.arrangement(width: geometry.size.width, height: geometry.size.height)
            ZStack(alignment: .topLeading) {
                ForEach(placed.tiles, id: \.id) { tile in
                    RoomTile(model: model, tile: tile).placed(tile.rectangle)
                        .transition(.tile(reduceMotion: reduceMotion))
                }
                if let own = placed.own {
                    OwnTile(model: model, placed: own, viewport: geometry.size).placed(own.rectangle)
                }
            }
            .animation(.tile(reduceMotion: reduceMotion), value: placed)
            .overlay(alignment: .top) { if placed.hasPages { PageButtons(model: model, placed: placed) } }
        }
    }
}

/// The page buttons of a room with more people than fit on the screen.
private struct PageButtons: View {
    let model: RoomModel
    let placed: LayoutOutput

    var body: some View {
        HStack {
            Button("Previous page", systemImage: "chevron.left") { model.showPage(placed.previousPage) }.round()
                .disabled(!placed.hasPreviousPage)
            Button("Next page", systemImage: "chevron.right") { model.showPage(placed.nextPage) }.round()
                .disabled(!placed.hasNextPage)
        }
        .padding(8)
    }
}

/// A tile with the video of a member or a shared screen, and the text on it.
private struct RoomTile: View {
    let model: RoomModel
    let tile: PlacedTile

    var body: some View {
        let row = model.row(of: tile.id)
        VideoView(
            model.video(of: tile.id), fit: model.tiles.fit(of: tile).video,
            onFirstFrame: { model.firstFrame(of: tile.id) },
            onSize: { model.pictureSize(of: tile.id, PixelSize($0)) }
        )
        .opacity(model.tiles.isShown(tile.id) ? 1 : 0)
        .background { NoPicture() }
        .overlay(alignment: .bottomLeading) {
            VStack(alignment: .leading) {
                Text(row.title).bold()
                ModelText(row.detail)
            }
            .font(.caption)
            .foregroundStyle(.white)
            .scrim()
        }
        .overlay { Text(model.reactionText(of: tile.id)).font(.largeTitle).accessibilityHidden(true) }
        .onTapGesture(count: 2) { model.doubleTap(tile.id) }
        .accessibilityElement()
        .accessibilityLabel(row.accessibilityText)
        .accessibilityAction(named: "Pin or unpin") { model.togglePin(tile.id) }
        .accessibilityAction(named: "Fit or fill") { model.doubleTap(tile.id) }
        // Add the menu last, so that VoiceOver reads it as a separate element.
        .overlay(alignment: .topTrailing) { HostMenu(model: model, id: tile.id) }
    }
}

/// The menu of a host's actions on the member in a tile.
private struct HostMenu: View {
    let model: RoomModel
    let id: String

    var body: some View {
        let actions = model.actions(on: id)
        if !actions.isEmpty {
            Menu {
                ForEach(actions, id: \.self) { action in
                    Button(action: { model.perform(action, on: id) }) { Text(action.text) }
                }
            } label: {
                Label("Options", systemImage: "ellipsis")
            }
            .round()
        }
    }
}

/// The self-view: a tap mutes, a drag moves it to another corner.
private struct OwnTile: View {
    let model: RoomModel
    let placed: PlacedOwnPicture
    let viewport: CGSize
    /// Whether a finger touches the self-view. The system also sets this to false when it cancels a touch.
    @GestureState private var isTouched = false
    @State private var scale = 1.0
    @Environment(\.accessibilityReduceMotion) private var reduceMotion

    var body: some View {
        VideoView(
            model.shownOwn, fit: placed.fit.video, mirrored: model.camera.isMirrored,
            onSize: { model.ownPictureSize(PixelSize($0)) }
        )
        .overlay { if model.lacksOwnPicture { NoPicture() } }
        .overlay { Text(model.reactionText(of: nil)).font(.largeTitle).accessibilityHidden(true) }
        .overlay {
            if model.isMuted {
                Color.black.opacity(Motion.mutedOverlay)
                Image(systemName: "mic.slash.fill").foregroundStyle(.white)
            }
        }
        .clipShape(RoundedRectangle(cornerRadius: 8))
        .scaleEffect(scale)
        .offset(x: model.dragOffset.x, y: model.dragOffset.y)
        .gesture(
            DragGesture(minimumDistance: 0)
                .updating($isTouched) { _, isTouched, _ in isTouched = true }
                .onChanged { move($0.translation) }
                .onEnded { _ in if model.endDrag() { pop() } }
        )
        // Runs after `onEnded`, which is not called for canceled touches.
        .onChange(of: isTouched) { _, isTouched in if !isTouched { model.cancelDrag() } }
        .onDisappear { model.cancelDrag() }
        .accessibilityElement()
        .accessibilityLabel(model.ownText)
        .accessibilityAction(named: "Mute") { model.toggleMute() }
        .accessibilityAction(named: "Move left") { model.move(.left) }
        .accessibilityAction(named: "Move right") { model.move(.right) }
        .accessibilityAction(named: "Move up") { model.move(.up) }
        .accessibilityAction(named: "Move down") { model.move(.down) }
    }

    private func move(_ translation: CGSize) {
        let viewport = AppModel.Rectangle(x: 0, y: 0, width: Int(viewport.width), height: Int(viewport.height))
        model.drag(x: translation.width, y: translation.height, home: placed.rectangle, viewport: viewport)
    }

    /// Animates the self-view in response to a tap.
    private func pop() {
        guard let pop = Motion.pop(reduceMotion: reduceMotion) else { return }
        withAnimation(.easeInOut(duration: pop.growing)) {
            scale = pop.scale
        } completion: {
            withAnimation(.easeInOut(duration: pop.shrinking)) { scale = 1 }
        }
    }
}

extension View {
    fileprivate func placed(_ rectangle: AppModel.Rectangle) -> some View {
        frame(width: CGFloat(rectangle.width), height: CGFloat(rectangle.height))
            .offset(x: CGFloat(rectangle.x), y: CGFloat(rectangle.y))
    }
}

extension Animation {
    /// Returns the animation of tiles that appear or move; nil to place them without an animation.
    fileprivate static func tile(reduceMotion: Bool) -> Animation? {
        switch Motion.tile(reduceMotion: reduceMotion) {
        case .spring(let duration, let bounce, let velocity):
            .interpolatingSpring(duration: duration, bounce: bounce, initialVelocity: velocity)
        // Do not animate the positions, because that would move the tiles instead of fading them.
        case .crossFade: nil
        }
    }
}

extension AnyTransition {
    /// Returns the transition of tiles that appear or disappear.
    fileprivate static func tile(reduceMotion: Bool) -> AnyTransition {
        switch Motion.tile(reduceMotion: reduceMotion) {
        case .spring: .opacity
        case .crossFade(let duration): .opacity.animation(.easeInOut(duration: duration))
        }
    }
}
