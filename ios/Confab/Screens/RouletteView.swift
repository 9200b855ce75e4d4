#if ROULETTE
import AppModel
import Confab
import ConfabUI
import Foundation
import SwiftUI

/// The screen for chats with strangers: permissions and setup, then the partner on top and the self-view below.
struct RouletteScreen: View {
    let model: RouletteModel
    let permissions: PermissionsModel

    var body: some View {
        Group {
            if model.isIdle {
                RouletteSetup(model: model, permissions: permissions)
            } else {
                RouletteChat(model: model)
            }
        }
        .navigationTitle("Strangers")
        .onAppear { model.appear() }
        .onDisappear { model.disappear() }
        .sheet(isPresented: .constant(model.isReporting)) {
            if let report = model.report { ReportView(model: report) { model.closeReport() } }
        }
    }
}

/// The form before a search.
private struct RouletteSetup: View {
    @Bindable var model: RouletteModel
    let permissions: PermissionsModel

    var body: some View {
        Form {
            Section {
                if model.asksForDevices {
                    PermissionsView(model: permissions)
                } else if model.showsPreview {
                    VideoView(model.shownOwn, mirrored: model.camera.isMirrored)
                        .aspectRatio(4 / 3, contentMode: .fit)
                        .accessibilityElement()
                        .accessibilityLabel(model.ownPicture)
                }
                ModelText(model.statusText)
                if model.offersSettings { SettingsButton() }
                ModelText(model.peopleText)
            }
            Section {
                Picker("Chat mode", selection: $model.mode) {
                    Text("Video").tag(Roulette.Mode.video)
                    Text("Text only").tag(Roulette.Mode.text)
                }
                HStack {
                    TextField("Interests", text: $model.interestDraft).onSubmit { model.addInterest() }
                    Button("Add") { model.addInterest() }.buttonStyle(.borderless).disabled(!model.canAddInterest)
                }
                ForEach(model.interests, id: \.self) { interest in
                    Text(interest).swipeActions {
                        Button("Remove", role: .destructive) { model.removeInterest(interest) }
                    }
                }
            } footer: {
                Text(model.addressText)
            }
            Button("Start") { model.start() }.disabled(!model.canStart)
            RouletteAfterwards(model: model)
        }
    }
}

/// The search and the chat.
private struct RouletteChat: View {
    @Bindable var model: RouletteModel

    var body: some View {
        VStack(spacing: 0) {
            if model.showsPictures { pictures }
            ScrollingTexts {
                Text(model.statusText).padding(.horizontal).accessibilityAddTraits(.updatesFrequently)
                ModelText(model.noticeText).font(.footnote)
                if model.offersSettings { SettingsButton().buttonStyle(.bordered) }
                if model.isInChat {
                    ModelText(model.interestsText).font(.footnote)
                    ModelText(model.keepText).font(.footnote)
                }
            }
            if model.isInChat {
                ChatView(
                    lines: model.chat, notes: model.notes, draft: $model.draft,
                    canWrite: model.hasChat, canSend: model.canSend, sendAgain: { model.sendAgain($0) }
                ) { model.send() }
            } else {
                ProgressView()
                Spacer()
            }
            HStack {
                buttons
                ScrollView(.horizontal) { HStack { RouletteAfterwards(model: model) } }
            }
            .padding()
        }
    }

    private var pictures: some View {
        VStack(spacing: 2) {
            VideoView(
                model.partner, onFirstFrame: { model.pictureShown() }, onSize: { model.pictureSize(PixelSize($0)) }
            )
            .overlay { if model.lacksPicture { NoPicture() } }
            .background { PictureInPicture(window: model.smallWindow) { model.smallWindow(isShown: $0) } }
            .accessibilityElement()
            .accessibilityLabel(model.partnerPicture)
            VideoView(model.shownOwn, mirrored: model.camera.isMirrored)
                .overlay(alignment: .bottom) {
                    HStack {
                        MuteButton(isOn: model.isMuted) { model.toggleMute() }
                        CameraOffButton(isOn: model.isCameraOff) { model.toggleCamera() }
                        SwitchCameraButton { model.switchCamera() }.disabled(!model.canSwitchCamera)
                    }
                    .padding(8)
                }
                .accessibilityElement(children: .contain)
                .accessibilityLabel(model.ownPicture)
        }
    }

    @ViewBuilder private var buttons: some View {
        Button("Next") { model.next() }
            .buttonStyle(.borderedProminent)
            .disabled(!model.canNext)
            .keyboardShortcut("n")
        Button("Stop") { model.stop() }.buttonStyle(.bordered).disabled(!model.canStop)
    }
}

/// Buttons to keep in touch with, report or block the current partner or, after the chat, the previous one.
private struct RouletteAfterwards: View {
    let model: RouletteModel

    var body: some View {
        if model.canKeep { Button("Keep in touch") { model.keep() } }
        if model.canReport { Button("Report") { model.openReport() } }
        if model.canBlock { Button("Block", role: .destructive) { model.block() } }
    }
}

/// The sheet for reporting a stranger.
struct ReportView: View {
    @Bindable var model: ReportModel
    let close: @MainActor () -> Void

    var body: some View {
        NavigationStack {
            Form {
                if !model.isSent {
                    Section("What happened?") {
                        Picker("Reason", selection: $model.reason) {
                            ForEach(ReportReason.allCases) { Text($0.text).tag(ReportReason?.some($0)) }
                        }
                        Toggle("Also block this person", isOn: $model.alsoBlocks)
                    }
                    Section {
                        ForEach(model.chat) { line in
                            HStack {
                                Text(line.sender).bold()
                                Text(line.text)
                            }
                            .accessibilityElement(children: .combine)
                        }
                    } footer: {
                        Text(model.attachedText)
                    }
                }
                ModelText(model.statusText)
            }
            .navigationTitle(model.title)
            .toolbar {
                ToolbarItem(placement: .cancellationAction) {
                    Button(model.closeText) { close() }
                }
                ToolbarItem(placement: .confirmationAction) {
                    Button("Send report") { model.submit() }.disabled(!model.canSend)
                }
            }
        }
        .interactiveDismissDisabled()
    }
}
#endif
